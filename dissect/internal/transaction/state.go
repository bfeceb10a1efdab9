package transaction

// state is the state of a transaction.
type state uint8

const (
	started          state = iota // it has an id, and its Call or Reply is being decoded
	outstanding                   // its Call has no Reply yet
	unanswered                    // it ended without a Reply
	awaitingDelivery              // its Reply was captured; whether the requester accepted it is unknown
	accepted                      // the requester accepted the Reply, or the transaction stopped waiting for that
	retracted                     // the requester refused its Reply
	lost                          // the requester never received its Reply
	emitted                       // its record was handed out
	states           int   = iota
)

// transitions lists the states that may follow each state. A Reply that nothing acknowledged
// is first accepted, and then lost if the connection ended without it.
var transitions = [states][]state{
	started:          {outstanding, awaitingDelivery},
	outstanding:      {unanswered, awaitingDelivery},
	unanswered:       {emitted},
	awaitingDelivery: {accepted, retracted, emitted},
	accepted:         {retracted, lost, emitted},
	retracted:        {emitted},
	lost:             {emitted},
}

// OnIllegalTransition, if not nil, is called with the number of a transaction that was to enter a
// state that may not follow its own. Tests set it, because no capture may cause that.
var OnIllegalTransition func(id int64)

// enter moves a transaction to another state. A state that may not follow the current one
// changes nothing.
func (x *txn) enter(next state) {
	for _, legal := range transitions[x.state] {
		if next == legal {
			x.state = next
			return
		}
	}
	if OnIllegalTransition != nil {
		OnIllegalTransition(x.rec.ID)
	}
}

// hasReply reports whether the transaction has a Reply that was not refused.
func (s state) hasReply() bool { return s == awaitingDelivery || s == accepted }

// mayBeRetransmitted reports whether the requester may not have the Reply of an ended
// transaction, and so may retransmit its Call.
func (s state) mayBeRetransmitted() bool {
	return s == awaitingDelivery || s == retracted
}
