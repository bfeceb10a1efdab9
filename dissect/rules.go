package dissect

// rule is one thing that can be wrong. To add one, add its row here and call
// [Dissector.find] where it shows.
type rule struct {
	id, severity, section string
}

const (
	severityError   = "error"
	severityWarning = "warning"
	severityNote    = "note"
)

// The rules, by the stable id that findings carry.
var (
	ruleHeaderTruncated   = rule{"header-truncated", severityError, "RFC 8166 s.4.5.2"}
	ruleHeaderMalformed   = rule{"header-malformed", severityError, "RFC 8166 s.4.5.2"}
	ruleVersion           = rule{"rdma-version", severityError, "RFC 8166 s.4.2.2"}
	ruleProc              = rule{"rdma-proc-unknown", severityError, "RFC 8166 s.4.2.4"}
	ruleMsgP              = rule{"rdma-msgp", severityError, "RFC 8166 s.4.6.1"}
	ruleDone              = rule{"rdma-done", severityError, "RFC 8166 s.4.6.2"}
	ruleNoMsgEmpty        = rule{"nomsg-without-chunk", severityError, "RFC 8166 s.4.2.4"}
	rulePosition          = rule{"read-position-unaligned", severityError, "RFC 8166 s.3.4.5"}
	ruleXIDMismatch       = rule{"xid-mismatch", severityError, "RFC 8166 s.4.2.1"}
	ruleRPCHeader         = rule{"rpc-header-malformed", severityError, "RFC 5531 s.9"}
	ruleZeroCreditsAsked  = rule{"credits-requested-zero", severityWarning, "RFC 8166 s.3.3.1"}
	ruleZeroCredits       = rule{"credits-granted-zero", severityError, "RFC 8166 s.3.3.1"}
	ruleCreditLimit       = rule{"credit-limit-exceeded", severityError, "RFC 8166 s.3.3.1"}
	ruleInline            = rule{"inline-threshold-exceeded", severityError, "RFC 8166 s.3.3.2"}
	ruleReplyRead         = rule{"reply-with-read-list", severityError, "RFC 8166 s.4.3.1"}
	ruleWriteListCopied   = rule{"write-list-not-copied", severityError, "RFC 8166 s.4.3.2"}
	ruleReplyChunkCopied  = rule{"reply-chunk-not-copied", severityError, "RFC 8166 s.4.3.3"}
	ruleReturnedTooLong   = rule{"returned-length-exceeds-chunk", severityError, "RFC 8166 s.3.4.6"}
	ruleMovedShort        = rule{"returned-bytes-not-seen", severityWarning, "RFC 8166 s.3.4.6"}
	ruleUnsolicitedReply  = rule{"reply-without-call", severityNote, "RFC 5531 s.9"}
	ruleDuplicateXID      = rule{"xid-in-use", severityWarning, "RFC 5531 s.9"}
	ruleInvalidateForeign = rule{"invalidated-foreign-handle", severityError, "RFC 8797 s.4.1"}
	ruleInvalidateDenied  = rule{"invalidation-not-negotiated", severityError, "RFC 8797 s.4.1"}
	ruleOutsideExposed    = rule{"rdma-outside-exposed-memory", severityError, "RFC 8166 s.3.4.3"}
	ruleRDMAError         = rule{"rdma-error", severityError, "RFC 8166 s.4.5"}
	ruleRemoteError       = rule{"remote-error-nak", severityError, "IBTA vol. 1 s.9.7.5"}
	ruleReplyRefused      = rule{"reply-refused", severityError, "IBTA vol. 1 s.9.9.3"}
	ruleBackwardChunks    = rule{"backward-with-chunks", severityError, "RFC 8167 s.5.3"}
	rulePrivateData       = rule{"private-data-unusable", severityNote, "RFC 8797 s.5.2"}
	ruleRejected          = rule{"connection-rejected", severityWarning, "IBTA vol. 1 s.12.6.7"}
	ruleTerminate         = rule{"terminate", severityError, "RFC 5040 s.4.8"}
	ruleTerminateBits     = rule{"terminate-bits-reversed", severityError, "RFC 5040 s.4.8"}
	ruleMPACRC            = rule{"mpa-crc-bad", severityError, "RFC 5044 s.4.4"}
	ruleMPAFraming        = rule{"mpa-framing", severityError, "RFC 5044 s.4.1"}
	ruleICRC              = rule{"icrc-bad", severityWarning, "IBTA vol. 1 s.7.8.1"}
	ruleLost              = rule{"capture-lost-packets", severityNote, "IBTA vol. 1 s.9.7"}
	ruleTooLarge          = rule{"limit-reached", severityNote, "rdmadump"}
)
