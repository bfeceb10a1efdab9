package synth

import "github.com/rdmadump/rdmadump/rocev2"

// Option changes how one work request is sent.
type Option func(*how)

// how is the combined effect of the options of a work request.
type how struct {
	invalidate, immediate *uint32
	solicited             bool
	size                  int // bytes of data in each packet
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

// Invalidate turns a Send into a Send With Invalidate of a handle.
func Invalidate(handle uint32) Option { return func(h *how) { h.invalidate = &handle } }

// Immediate adds immediate data to a Send or RDMA Write. iWARP has no immediate data.
func Immediate(data uint32) Option { return func(h *how) { h.immediate = &data } }

// Solicited sets the Solicited Event flag of a Send.
func Solicited() Option { return func(h *how) { h.solicited = true } }

// PacketSize sets the number of bytes of data in each packet; the default is the path MTU.
func PacketSize(bytes int) Option { return func(h *how) { h.size = bytes } }

// Length sets the DMA length in the RETH of an RDMA Write; the default is the real length.
// iWARP has no such field.
func Length(bytes uint32) Option { return func(h *how) { h.length = &bytes } }

// AtPSN sets the PSN of a request or acknowledgement, and does not count it. Use it for
// retransmissions and packets out of order. iWARP has no PSNs; [Wire.Retransmit] retransmits on
// both transports.
func AtPSN(psn uint32) Option { return func(h *how) { h.psn = &psn } }

// Packets sends only the packets from <= i < to of the operation. PSNs advance as if all
// packets had been sent. On iWARP, the other packets are missing from the stream.
func Packets(from, to int) Option { return func(h *how) { h.from, h.to = from, to } }

// Over sends with the opcodes of another transport service, such as UC, XRC or RD.
func Over(t rocev2.Transport) Option { return func(h *how) { h.transport = t } }
