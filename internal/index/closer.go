package index

import (
	"context"
	"errors"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Closer is what a second pass over a capture shows of one RPC, and an Index does not keep: decoded
// arguments and results, and packets.
type Closer struct {
	ID          int64          // number of the transaction
	XIDs        []record.Hex32 // its XID, so that no others are decoded; empty decodes all
	First, Last int64          // packets to show; Last is 0 for none
	Until       record.Time    // with several capture points, where packet numbers repeat, the time of the last packet to show instead

	// Transaction gets the record with decoded arguments and results. Packet gets the packets from
	// First to Last with their trees. Both are valid until the function returns. Either may be nil.
	Transaction func(*record.Transaction)
	Packet      func(*record.Packet)
}

// errSeen ends a second pass, because everything was seen.
var errSeen = errors.New("seen")

// Look dissects a capture from its start, until everything that c asks for was seen. The options
// must be those of the first pass, but not Live.
func (c *Closer) Look(ctx context.Context, source capture.Source, o dissect.Options) error {
	wantsTransaction, wantsPackets := c.Transaction != nil, c.Packet != nil && c.Last > 0
	done := func() error {
		if !wantsTransaction && !wantsPackets {
			return errSeen
		}
		return nil
	}
	h := dissect.Handler{}
	if wantsTransaction {
		o.Decode, o.XIDs = true, c.XIDs
		h.Transaction = func(r *record.Transaction) error {
			if r.ID == c.ID {
				c.Transaction(r)
				wantsTransaction = false
			}
			return done()
		}
	}
	if wantsPackets {
		byTime := o.Points != nil
		if o.Tree = true; !byTime {
			o.First, o.Last = c.First, c.Last
		}
		h.Packet = func(p *record.Packet) error {
			c.Packet(p)
			wantsPackets = p.Number < c.Last
			if byTime {
				wantsPackets = p.Time <= c.Until
			}
			return done()
		}
	}
	if done() != nil {
		return nil
	}
	_, err := dissect.New(h, o).Run(ctx, source)
	if err == errSeen {
		return nil
	}
	return err
}
