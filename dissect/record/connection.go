package record

import "unsafe"

// Endpoint is one end of a connection.
type Endpoint struct {
	Address Opt[string] `json:"address" doc:"IP address, or LID of native InfiniBand"`
	Port    Opt[uint16] `json:"port" doc:"TCP or RDMA CM port"`
	QPN     Opt[Hex24]  `json:"qpn" doc:"queue pair number; null of iWARP"`
}

// Connection is a queue pair's, or a TCP stream's, life.
type Connection struct {
	Released            `json:"-"`
	Type                string              `json:"type" doc:"connection"`
	ID                  int                 `json:"id" doc:"counts from 0" alias:"conn,connection"`
	Transport           string              `json:"transport" doc:"what carries it" values:"RoCEv2,RoCEv1,InfiniBand,iWARP"`
	Client              Endpoint            `json:"client" doc:"who opened it" alias:"ip.src=address"`
	Server              Endpoint            `json:"server" doc:"who accepted it" alias:"ip.dst=address"`
	Established         Opt[Time]           `json:"established" doc:"when the handshake was complete"`
	Closed              Opt[Time]           `json:"closed" doc:"when its end began"`
	CloseReason         Opt[string]         `json:"close_reason" doc:"why it ended, null while it is open"`
	Ended               Opt[Ended]          `json:"ended" doc:"how it ended, null while it is open"`
	Handshake           string              `json:"handshake" doc:"whether the capture has it" values:"seen,missed"`
	ServiceID           Opt[Hex64]          `json:"service_id" doc:"that the client asked for" alias:"infiniband.cm.req.serviceid"`
	PrivateData         PrivateDataPair     `json:"private_data" doc:"what both sides said of themselves (RFC 8797)"`
	InlineThreshold     InlineThresholds    `json:"inline_threshold" doc:"how long a Send may be"`
	RemoteInvalidation  Opt[bool]           `json:"remote_invalidation" doc:"whether both sides agreed to it; null where the handshake was not seen"`
	PathMTU             Opt[int]            `json:"path_mtu" doc:"bytes"`
	UpperLayer          string              `json:"upper_layer" doc:"whose traffic it is" values:"rpcrdma,nvme,iser,smbdirect,ipoib,unknown"`
	Transactions        int64               `json:"transactions" doc:"RPCs on it" alias:"rpcs"`
	Credits             CreditPair          `json:"credits" doc:"of both directions"`
	Invalidation        InvalidationFigures `json:"invalidation" doc:"how its Replies invalidate"`
	Packets             int64               `json:"packets" doc:"that belong to it"`
	Retransmitted       int64               `json:"retransmitted" doc:"packets that were sent again"`
	RetransmittedOfNone int64               `json:"retransmitted_of_none" doc:"those of them that belong to no transaction"`
	OutOfOrder          int64               `json:"out_of_order" doc:"packets that came after a later one"`
	Lost                int64               `json:"lost" doc:"packets acknowledged but not captured"`
	Naks                int64               `json:"naks" doc:"NAKs, RNR aside"`
	RNRNaks             int64               `json:"rnr_naks" doc:"receiver-not-ready NAKs"`
	First               Time                `json:"first" doc:"its first packet"`
	Last                Time                `json:"last" doc:"its last packet"`
}

// Ending is how a connection ended.
type Ending string

// The ways to end.
const (
	EndDisconnect Ending = "disconnect"        // DREQ, or FIN of both sides
	EndReset      Ending = "reset"             // RST
	EndNak        Ending = "nak"               // a NAK that no connection survives
	EndTerminate  Ending = "terminate"         // a Terminate
	EndRejected   Ending = "rejected"          // REJ, or an MPA reply that refuses
	EndRetries    Ending = "retries_exhausted" // what one side repeated was never acknowledged, and it gave up
	EndReused     Ending = "queue_pair_reused" // its queue pair was used for another
	EndSilence    Ending = "silence"           // what one side repeated was never acknowledged, up to the end of the capture
)

// Values are all ways.
func (Ending) Values() []string {
	return wordsOf(EndDisconnect, EndReset, EndNak, EndTerminate, EndRejected, EndRetries, EndReused, EndSilence)
}

// State is how a connection ended: why it did, or how else that shows; "open" while it
// goes on.
func (c *Connection) State() string {
	if reason, known := c.CloseReason.Get(); known {
		return reason
	}
	if end, ended := c.Ended.Get(); ended {
		return string(end.How)
	}
	return "open"
}

// Ended says which side ended a connection, how, and in which packet.
type Ended struct {
	By      Opt[End]    `json:"by" doc:"who did, null where nobody can tell"`
	How     Ending      `json:"how" doc:"the way"`
	Packet  Opt[int64]  `json:"packet" doc:"that shows it"`
	Reason  Opt[string] `json:"reason" doc:"of a NAK, Terminate or rejection"`
	Repeats Opt[int64]  `json:"repeats" doc:"how often what was never acknowledged was sent again"`
	Died    int64       `json:"died" doc:"Calls that were open then, and never got a Reply"`
	XIDs    []Hex32     `json:"xids" doc:"of those, the first few; null without"`
}

// Clone is a copy that stays good when the handler has returned.
func (r *Connection) Clone() *Connection {
	c := *r
	c.PrivateData = PrivateDataPair{clonePointer(r.PrivateData.Client), clonePointer(r.PrivateData.Server)}
	return &c
}

// Bytes is how much memory a Clone takes.
func (r *Connection) Bytes() int {
	end, _ := r.Ended.Get()
	return int(unsafe.Sizeof(*r)+2*unsafe.Sizeof(PrivateData{})) + 4*len(end.XIDs)
}

// PrivateDataPair is what both sides said (RFC 8797).
type PrivateDataPair struct {
	Client *PrivateData `json:"client" doc:"null when it said nothing usable"`
	Server *PrivateData `json:"server" doc:"null when it said nothing usable"`
}

// PrivateData is one side's.
type PrivateData struct {
	Offset             int   `json:"offset" doc:"bytes from the start of the consumer's private data"`
	Version            uint8 `json:"version" doc:"of the format"`
	RemoteInvalidation bool  `json:"remote_invalidation" doc:"R: it takes Send With Invalidate"`
	SendSize           int   `json:"send_size" doc:"bytes"`
	ReceiveSize        int   `json:"receive_size" doc:"bytes"`
}

// InlineThresholds are those in force.
type InlineThresholds struct {
	ClientToServer int    `json:"client_to_server" doc:"bytes"`
	ServerToClient int    `json:"server_to_client" doc:"bytes"`
	Source         string `json:"source" doc:"where they come from" values:"private_data,default"`
}

// CreditPair is the credits of both directions.
type CreditPair struct {
	Forward  Credits `json:"forward" doc:"the client's Calls"`
	Backward Credits `json:"backward" doc:"the server's Calls"`
}

// Credits of one direction.
type Credits struct {
	Requested    Opt[uint32] `json:"requested" doc:"by the last Call"`
	Granted      Opt[uint32] `json:"granted" doc:"by the last Reply"`
	PeakInFlight int         `json:"peak_in_flight" doc:"most Calls without Reply at once"`
}

// InvalidationStyle is who chooses what a Reply invalidates
// (draft-cel-nfsv4-reminv-design s.2.3).
type InvalidationStyle string

// The styles.
const (
	InvalidationNone InvalidationStyle = "none"
	RespondersChoice InvalidationStyle = "responder"
	RequestersChoice InvalidationStyle = "requester"
)

// Values are all styles.
func (InvalidationStyle) Values() []string {
	return wordsOf(InvalidationNone, RespondersChoice, RequestersChoice)
}

// InvalidationHabit is which of a Call's handles a responder chooses.
type InvalidationHabit string

// The habits.
const (
	HabitOnly    InvalidationHabit = "only"    // no Call had more than one
	HabitSingle  InvalidationHabit = "single"  // only when the Call has one handle
	HabitFirst   InvalidationHabit = "first"   // in the order of the chunk lists
	HabitLast    InvalidationHabit = "last"    //
	HabitLargest InvalidationHabit = "largest" // of the most bytes
	HabitMixed   InvalidationHabit = "mixed"   // none of these
)

// Values are all habits.
func (InvalidationHabit) Values() []string {
	return wordsOf(HabitOnly, HabitSingle, HabitFirst, HabitLast, HabitLargest, HabitMixed)
}

// InvalidationFigures say how the Replies of a connection invalidate handles, of
// both directions.
type InvalidationFigures struct {
	Style               InvalidationStyle      `json:"style" doc:"who chooses the handle"`
	Habit               Opt[InvalidationHabit] `json:"habit" doc:"responder's choice: which of the Call's handles"`
	ChunkReplies        int64                  `json:"chunk_replies" doc:"Replies to Calls that expose handles"`
	InvalidatingReplies int64                  `json:"invalidating_replies" doc:"those of them sent With Invalidate"`
	OfAnotherRead       int64                  `json:"of_another_read_chunk" doc:"those of them that name a handle of another RPC's Read chunk"`
	LeftHandles         int64                  `json:"left_handles" doc:"handles that these Replies left to the requester"`
	NeedMore            int64                  `json:"need_more" doc:"Replies that would have needed more than one invalidation"`
	MixedCalls          int64                  `json:"mixed_calls" doc:"Calls with handles both to read and to write"`
}
