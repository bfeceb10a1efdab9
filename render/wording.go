package render

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// waitTexts names the reasons for waits: "stalled for 5ms: ...".
var waitTexts = map[record.WaitReason]string{
	record.RetransmitTimeout: "retransmission timeout",
	record.RetransmitGap:     "fast retransmission",
	record.RetransmitNak:     "retransmission after a NAK",
	record.RetransmitUnknown: "retransmission for a reason that the capture does not show",
	record.RNRNak:            "receiver not ready (RNR NAK)",
	record.HeadOfLine:        "transfers of another RPC on the same connection",
	record.NewConnection:     "retransmission on a new connection",
	record.CreditLimit:       "waiting for credits",
}

// WaitText returns the words for a reason. It returns a reason that this program does not
// know unchanged.
func WaitText(reason record.WaitReason) string {
	if text := waitTexts[reason]; text != "" {
		return text
	}
	return string(reason)
}

// stalledUntil says what a side waited for, after "stalled" or "no progress".
func stalledUntil(r *record.Transaction, w *record.Wait) string {
	if xid, known := w.BlockingXID.Get(); known && w.Reason == record.HeadOfLine {
		return fmt.Sprintf("by the transfers of XID %v", xid)
	}
	switch w.Reason {
	case record.RetransmitTimeout, record.RetransmitUnknown:
		if w.Acknowledged {
			return "until it retransmitted what was acknowledged: ACK lost after the capture point, or not accepted"
		}
		if w.Reason == record.RetransmitUnknown {
			return "until it retransmitted, cause unknown"
		}
		return "until its retransmission timeout"
	case record.RetransmitGap:
		return "until its fast retransmission"
	case record.RetransmitNak:
		if nak, known := w.NakPacket.Get(); known {
			at := numbered(nak, w.NakPoint)
			switch {
			case r.HasNak(nak):
			case w.BlockingTransaction.Known():
				return "until its retransmission after the NAK of another RPC in packet " + at
			default:
				return "until its retransmission after the NAK of an earlier packet in packet " + at
			}
			return "until its retransmission after the NAK in packet " + at
		}
		return "until its retransmission after a NAK"
	case record.RNRNak:
		return "because the receiver was not ready (RNR NAK)"
	case record.NewConnection:
		return "until it retransmitted the Call on a new connection"
	}
	return "by " + WaitText(w.Reason)
}

// shortlyUntil says what stalledUntil says in fewer words.
func shortlyUntil(w *record.Wait) string {
	if w.Acknowledged {
		return "until it retransmitted what was acknowledged"
	}
	switch w.Reason {
	case record.RetransmitTimeout:
		return "until its timeout"
	case record.RetransmitUnknown, record.RetransmitGap:
		return "until it retransmitted"
	case record.RetransmitNak:
		if nak, known := w.NakPacket.Get(); known {
			return "until it retransmitted after NAK " + numbered(nak, w.NakPoint)
		}
		return "until it retransmitted after a NAK"
	case record.RNRNak:
		return "until an RNR NAK"
	case record.NewConnection:
		return "until a new connection"
	}
	return "by " + WaitText(w.Reason)
}

// pauseText returns the text of a wait in the ladder, and two shorter texts; to follows its length, except in the shortest one.
func pauseText(r *record.Transaction, w *record.Wait, to string) (text, short, least string) {
	if xid, known := w.BlockingXID.Get(); known && w.Reason == record.HeadOfLine {
		short = fmt.Sprintf("%s%s: transfers of XID %v came first", Duration(w.NS), to, xid)
		return "... " + short + " ...", short, fmt.Sprintf("%s: stalled by %v", Duration(w.NS), xid)
	}
	text = fmt.Sprintf("... %s%s: %s stalled %s ...", Duration(w.NS), to, w.Waiting, stalledUntil(r, w))
	least = Duration(w.NS) + ": stalled"
	switch nak, known := w.NakPacket.Get(); {
	case known && w.Reason == record.RetransmitNak:
		least += fmt.Sprintf(" until after NAK %d", nak)
	case w.Reason == record.RetransmitUnknown || w.Reason == record.RetransmitGap || w.Reason == record.RetransmitNak:
		least += " until retransmitted"
	case w.Reason == record.RetransmitTimeout:
		least += " until a timeout"
	case w.Reason == record.RNRNak:
		least += " by an RNR NAK"
	}
	return text, fmt.Sprintf("%s%s: %s stalled %s", Duration(w.NS), to, w.Waiting, shortlyUntil(w)), least
}

// numbered returns a packet number, with its capture point if there are several.
func numbered(n int64, point string) string {
	if point == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %s", n, clean(point))
}

// endingWords name the ways in which a connection ends, if the name in JSON without its
// underscores is not good enough.
var endingWords = map[record.Ending]string{record.EndNak: "NAK", record.EndTerminate: "Terminate"}

// EndingText says how a connection ended and which side ended it: "retries exhausted
// (client)". Tables, charts and the overview use the same words.
func EndingText(how record.Ending, by record.Opt[record.End]) string {
	text := endingWords[how]
	if text == "" {
		text = strings.ReplaceAll(string(how), "_", " ")
	}
	if side, known := by.Get(); known {
		text += " (" + string(side) + ")"
	}
	return text
}

// outstanding lists the Calls that had no Reply when a connection ended.
func outstanding(count int64, xids []record.Hex32) string {
	const most = 8
	var list []string
	for i, xid := range xids {
		if i == most {
			break
		}
		list = append(list, xid.String())
	}
	if len(list) > 0 && int64(len(list)) < count {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}

// MorePairs says how many pairs of a list are not shown. An overview knows a limited number of pairs.
func MorePairs(of, shown int) string {
	text := record.Plural(int64(of-shown), "more pair")
	if of == analyze.MaxPairs {
		text = "at least " + text
	}
	return text
}

// MountText says what a client and a server agreed on.
func MountText(m *analyze.Mounted) string {
	text := fmt.Sprintf("%s > %s  NFS %s", m.Client.Or("?"), m.Server.Or("?"), m.NFSVersion)
	if m.Security != "" {
		text += ", " + m.Security
	}
	text += ", " + record.Plural(int64(m.Connections), "connection")
	if mtu, known := m.MTU.Get(); known {
		text += fmt.Sprintf(", MTU %d B", mtu)
	}
	read, returned := m.ReadBytesMax.Get()
	if returned {
		text += ", largest READ seen " + Size(read)
	}
	switch asked, known := m.ReadCountMax.Get(); {
	case known && !returned:
		text += ", READs asked for at most " + Size(asked)
	case known && asked != read:
		text += " (asked for at most " + Size(asked) + ")"
	}
	if n, known := m.WriteBytesMax.Get(); known {
		text += ", largest WRITE seen " + Size(n)
	}
	if t, known := m.InlineThresholds.Get(); known {
		text += fmt.Sprintf(", inline threshold %d B to the server, %d B to the client", t.ClientToServer, t.ServerToClient)
	}
	if n, known := m.Credits.Get(); known {
		text += ", " + record.Plural(int64(n), "credit")
	}
	return text
}
