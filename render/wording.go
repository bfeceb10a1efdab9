package render

import "github.com/rdmadump/rdmadump/dissect/record"

// waitTexts says what ended a wait, or what it was for: "stalled for 5ms until ...".
var waitTexts = map[record.WaitReason]string{
	record.RetransmitTimeout: "retransmission timeout",
	record.RetransmitGap:     "retransmission after a gap",
	record.RetransmitNak:     "retransmission after a NAK",
	record.RNRNak:            "receiver not ready (RNR NAK)",
	record.HeadOfLine:        "waiting for another transaction",
	record.CreditLimit:       "out of credits",
}

// waitText returns the words for a reason; a reason that this program does not
// know is printed as it is.
func waitText(reason record.WaitReason) string {
	if text := waitTexts[reason]; text != "" {
		return text
	}
	return string(reason)
}
