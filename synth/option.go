package synth

import "github.com/rdmadump/rdmadump/rocev2"

// Option changes how one work request is sent.
type Option func(*how)

// how is what the options of a work request come to.
type how struct {
	invalidate, immediate *uint32
	solicited             bool
	size                  int // bytes of data in a packet
	length                *uint32
	psn                   *uint32
	from, to              int
	transport             rocev2.Transport
}

func (c *Conn) how(options []Option) how {
	h := how{size: c.Options.MTU, to: 1 << 30}
	for _, o := range options {
		o(&h)
	}
	return h
}

// Invalidate makes a Send a Send With Invalidate of a handle.
func Invalidate(handle uint32) Option { return func(h *how) { h.invalidate = &handle } }

// Immediate gives a Send or RDMA Write immediate data. iWARP has none.
func Immediate(data uint32) Option { return func(h *how) { h.immediate = &data } }

// Solicited asks for an event at the receiver of a Send.
func Solicited() Option { return func(h *how) { h.solicited = true } }

// PacketSize cuts data into packets of so many bytes, not of the path MTU.
func PacketSize(bytes int) Option { return func(h *how) { h.size = bytes } }

// Length is what an RDMA Write's header, a RETH, says of its length, in place of
// the truth. iWARP's has none.
func Length(bytes uint32) Option { return func(h *how) { h.length = &bytes } }

// AtPSN gives a request or acknowledgement that PSN, and does not count it: a
// repeat, or one out of its place. iWARP has none; [Wire.Again] repeats on both.
func AtPSN(psn uint32) Option { return func(h *how) { h.psn = &psn } }

// Packets sends only some packets of the operation, from <= i < to; PSNs are
// counted as if all had been sent. Of iWARP, the others are bytes that the
// stream never had.
func Packets(from, to int) Option { return func(h *how) { h.from, h.to = from, to } }

// Over sends with the opcodes of another transport service: UC, XRC, RD.
func Over(t rocev2.Transport) Option { return func(h *how) { h.transport = t } }
