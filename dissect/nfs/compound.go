package nfs

import "fmt"

// operation describes one operation of a COMPOUND: how its arguments and its
// results are laid out (see [Stream.layout]). Where a union stands in the way, a
// function walks instead. Results follow a status of NFS4_OK only: an operation
// that fails is the last of its COMPOUND, so that nobody has to walk past it.
//
// To add an operation, add its row.
type operation struct {
	name               string
	args, results      string
	walkArgs, walkRest func(*Stream) // rest: of the results, after the layout
}

// writeResp is write_response4: callback ids, count, committed, verifier.
const writeResp = "[s]lwl"

// operations of NFSv4.0 (RFC 7530), 4.1 (RFC 8881), 4.2 (RFC 7862) and extended
// attributes (RFC 8276), by number.
var operations = [...]operation{
	3:  {name: "ACCESS", args: "w", results: "ww"},
	4:  {name: "CLOSE", args: "ws", results: "s"},
	5:  {name: "COMMIT", args: "lw", results: "l"},
	6:  {name: "CREATE", walkArgs: createArgs, results: "cb"},
	7:  {name: "DELEGPURGE", args: "l"},
	8:  {name: "DELEGRETURN", args: "s"},
	9:  {name: "GETATTR", args: "b", results: "F"},
	10: {name: "GETFH", results: "o"},
	11: {name: "LINK", args: "o", results: "c"},
	12: {name: "LOCK", walkArgs: lockArgs, results: "s"},
	13: {name: "LOCKT", args: "wlllo"},
	14: {name: "LOCKU", args: "wwsll", results: "s"},
	15: {name: "LOOKUP", args: "o"},
	16: {name: "LOOKUPP"},
	17: {name: "NVERIFY", args: "F"},
	18: {name: "OPEN", walkArgs: openArgs, results: "scwb", walkRest: openDelegation},
	19: {name: "OPENATTR", args: "w"},
	20: {name: "OPEN_CONFIRM", args: "sw", results: "s"},
	21: {name: "OPEN_DOWNGRADE", args: "swww", results: "s"},
	22: {name: "PUTFH", args: "o"},
	23: {name: "PUTPUBFH"},
	24: {name: "PUTROOTFH"},
	25: {name: "READ", args: "slw", results: "wD"},
	26: {name: "READDIR", args: "llwwb", results: "l", walkRest: directory},
	27: {name: "READLINK", results: "D"},
	28: {name: "REMOVE", args: "o", results: "c"},
	29: {name: "RENAME", args: "oo", results: "cc"},
	30: {name: "RENEW", args: "l"},
	31: {name: "RESTOREFH"},
	32: {name: "SAVEFH"},
	33: {name: "SECINFO", args: "o", walkRest: securityInfo},
	34: {name: "SETATTR", args: "sF", results: "b"},
	35: {name: "SETCLIENTID", args: "lowoow", results: "ll"},
	36: {name: "SETCLIENTID_CONFIRM", args: "ll"},
	37: {name: "VERIFY", args: "F"},
	38: {name: "WRITE", args: "slwo", results: "wwl"},
	39: {name: "RELEASE_LOCKOWNER", args: "lo"},
	40: {name: "BACKCHANNEL_CTL", args: "w", walkArgs: securityParms},
	41: {name: "BIND_CONN_TO_SESSION", args: "sww", results: "sww"},
	42: {name: "EXCHANGE_ID", args: "low", walkArgs: exchangeArgs, results: "lww", walkRest: exchangeResults},
	43: {name: "CREATE_SESSION", args: "lwwwwwwww[w]wwwwww[w]w", walkArgs: securityParms, results: "swwwwwwww[w]wwwwww[w]"},
	44: {name: "DESTROY_SESSION", args: "s"},
	45: {name: "FREE_STATEID", args: "s"},
	46: {name: "GET_DIR_DELEGATION", args: "wbttbb", walkRest: directoryDelegation},
	47: {name: "GETDEVICEINFO", args: "swwb", results: "wob"},
	48: {name: "GETDEVICELIST", args: "wwll", results: "ll[s]w"},
	49: {name: "LAYOUTCOMMIT", args: "llws?l]?t]wo", results: "?l]"},
	50: {name: "LAYOUTGET", args: "wwwlllsw", results: "ws[llwwo]"},
	51: {name: "LAYOUTRETURN", args: "www", walkArgs: layoutReturn, results: "?s]"},
	52: {name: "SECINFO_NO_NAME", args: "w", walkRest: securityInfo},
	53: {name: "SEQUENCE", args: "swwww", results: "swwwww"},
	54: {name: "SET_SSV", args: "oo", results: "o"},
	55: {name: "TEST_STATEID", args: "[s]", results: "[w]"},
	56: {name: "WANT_DELEGATION", args: "w", walkArgs: wantArgs, walkRest: openDelegation},
	57: {name: "DESTROY_CLIENTID", args: "l"},
	58: {name: "RECLAIM_COMPLETE", args: "w"},
	59: {name: "ALLOCATE", args: "sll"},
	60: {name: "COPY", args: "sslllww", walkArgs: locations, results: writeResp + "ww"},
	61: {name: "COPY_NOTIFY", args: "s", walkArgs: location, results: "lws", walkRest: locations},
	62: {name: "DEALLOCATE", args: "sll"},
	63: {name: "IO_ADVISE", args: "sllb", results: "b"},
	64: {name: "LAYOUTERROR", args: "lls[sww]"},
	65: {name: "LAYOUTSTATS", args: "llsllllswo"},
	66: {name: "OFFLOAD_CANCEL", args: "s"},
	67: {name: "OFFLOAD_STATUS", args: "s", results: "l[w]"},
	68: {name: "READ_PLUS", args: "slw", results: "w", walkRest: readPlus},
	69: {name: "SEEK", args: "slw", results: "wl"},
	70: {name: "WRITE_SAME", args: "swllllwlo", results: writeResp},
	71: {name: "CLONE", args: "sslll"},
	72: {name: "GETXATTR", args: "o", results: "o"},
	73: {name: "SETXATTR", args: "woo", results: "c"},
	74: {name: "LISTXATTRS", args: "lw", results: "l[o]w"},
	75: {name: "REMOVEXATTR", args: "o", results: "c"},
}

// callbackOperations are those of CB_COMPOUND.
var callbackOperations = [...]operation{
	3:  {name: "CB_GETATTR", args: "ob", results: "F"},
	4:  {name: "CB_RECALL", args: "swo"},
	5:  {name: "CB_LAYOUTRECALL", args: "www", walkArgs: layoutRecall},
	6:  {name: "CB_NOTIFY", args: "so[bo]"},
	7:  {name: "CB_PUSH_DELEG", args: "o", walkArgs: openDelegation},
	8:  {name: "CB_RECALL_ANY", args: "wb"},
	9:  {name: "CB_RECALLABLE_OBJ_AVAIL", args: "w"},
	10: {name: "CB_RECALL_SLOT", args: "w"},
	11: {name: "CB_SEQUENCE", args: "swwww[s[ww]]", results: "swwww"},
	12: {name: "CB_WANTS_CANCELLED", args: "ww"},
	13: {name: "CB_NOTIFY_LOCK", args: "olo"},
	14: {name: "CB_NOTIFY_DEVICEID", args: "[bo]"},
	15: {name: "CB_OFFLOAD", args: "os", walkArgs: offload},
}

const opIllegal = 10044

// maxOperations bounds how many names are kept of one COMPOUND.
const maxOperations = 256

// Compound is what a walk over a COMPOUND found.
type Compound struct {
	Operations   []string // names, in order
	Count        uint32   // how many there are, by the message's own word
	Status       uint32   // Reply: of the whole COMPOUND
	HasStatus    bool     // it was there to read
	MinorVersion uint32   // Call
	Complete     bool     // all operations were named

	stream Stream // here and not on the stack: the walkers take its address
}

// Arguments walks the arguments of a COMPOUND or, when callback is set, of a
// CB_COMPOUND, and appends the names of its operations to c.Operations.
func (c *Compound) Arguments(s Stream, callback bool) {
	*c = Compound{Operations: c.Operations[:0], stream: s}
	c.stream.opaque(false) // tag
	c.MinorVersion = c.stream.word()
	if callback {
		c.stream.word() // callback_ident
	}
	c.Count = c.stream.word()
	c.walk(callback, passArguments)
}

func passArguments(s *Stream, op *operation) {
	s.layout(op.args)
	if op.walkArgs != nil {
		op.walkArgs(s)
	}
}

// Results walks the results of a COMPOUND or CB_COMPOUND likewise.
func (c *Compound) Results(s Stream, callback bool) {
	*c = Compound{Operations: c.Operations[:0], stream: s}
	c.Status = c.stream.word()
	c.HasStatus = !c.stream.failed
	c.stream.opaque(false) // tag
	c.Count = c.stream.word()
	c.walk(callback, passResults)
}

func passResults(s *Stream, op *operation) {
	if s.word() != 0 { // the operation's own status
		s.failed = true // nothing follows it
		return
	}
	s.layout(op.results)
	if op.walkRest != nil {
		op.walkRest(s)
	}
}

// walk names operations as long as pass gets over them.
func (c *Compound) walk(callback bool, pass func(*Stream, *operation)) {
	s := &c.stream
	for i := uint32(0); i < c.Count && !s.failed && i < maxOperations; i++ {
		number := s.word()
		if s.failed {
			return
		}
		op := lookup(number, callback)
		c.Operations = append(c.Operations, operationName(op, number))
		if i+1 == c.Count {
			if c.Complete = true; len(s.holes) == 0 {
				return // nobody needs what comes after the name
			}
		}
		if op == nil {
			return
		}
		pass(s, op)
	}
	c.Complete = !s.failed && c.Count == 0
}

// ranks say how little an operation tells of what its COMPOUND is for: most have
// nearly all of these.
var ranks = map[string]int{
	"ACCESS": 1, "GETATTR": 2, "GETFH": 3, "PUTFH": 3, "PUTROOTFH": 3, "PUTPUBFH": 3, "SAVEFH": 3, "RESTOREFH": 3, "SEQUENCE": 3, "CB_SEQUENCE": 3,
}

// Principal is the operation that a COMPOUND is for: the first of those that
// tell most. It is empty when there is none.
func Principal(operations []string) (name string) {
	for _, op := range operations {
		if name == "" || ranks[op] < ranks[name] {
			name = op
		}
	}
	return name
}

func lookup(number uint32, callback bool) *operation {
	table := operations[:]
	if callback {
		table = callbackOperations[:]
	}
	if int64(number) >= int64(len(table)) || table[number].name == "" {
		return nil
	}
	return &table[number]
}

func operationName(op *operation, number uint32) string {
	switch {
	case op != nil:
		return op.name
	case number == opIllegal:
		return "ILLEGAL"
	}
	return fmt.Sprintf("OP_%d", number)
}

// The unions that a layout cannot describe.

func createArgs(s *Stream) {
	switch s.word() {
	case 5: // NF4LNK: the target may travel in a Read chunk
		s.opaque(false)
	case 3, 4: // NF4BLK, NF4CHR
		s.skip(8)
	}
	s.layout("oF")
}

func lockArgs(s *Stream) {
	s.layout("wwll")
	if s.word() != 0 { // new lock owner
		s.layout("wswlo")
	} else {
		s.layout("sw")
	}
}

func openArgs(s *Stream) {
	s.layout("wwwlo")
	if s.word() == 1 { // OPEN4_CREATE
		switch s.word() {
		case 0, 1: // UNCHECKED4, GUARDED4
			s.layout("F")
		case 2: // EXCLUSIVE4
			s.layout("l")
		case 3: // EXCLUSIVE4_1
			s.layout("lF")
		}
	}
	openClaim(s)
}

// openClaim passes an open_claim4.
func openClaim(s *Stream) {
	switch s.word() {
	case 0, 3: // CLAIM_NULL, CLAIM_DELEGATE_PREV
		s.layout("o")
	case 1: // CLAIM_PREVIOUS
		s.layout("w")
	case 2: // CLAIM_DELEGATE_CUR
		s.layout("so")
	case 5: // CLAIM_DELEG_CUR_FH
		s.layout("s")
	}
}

func wantArgs(s *Stream) {
	if s.word() == 1 { // CLAIM_PREVIOUS
		s.layout("w")
	}
}

func openDelegation(s *Stream) {
	switch s.word() {
	case 1, 4: // READ, READ_ATTRS_DELEG
		s.layout("swwwwo")
	case 2, 5: // WRITE, WRITE_ATTRS_DELEG
		s.layout("sww") // the last word tells which limit follows; both take 8 bytes
		s.layout("lwwwo")
	case 3: // NONE_EXT
		if why := s.word(); why == 1 || why == 2 { // CONTENTION, RESOURCE
			s.layout("w")
		}
	}
}

func directory(s *Stream) {
	for s.word() == 1 && !s.failed {
		s.layout("loF")
	}
	s.layout("w")
}

func securityInfo(s *Stream) {
	for count := s.word(); count > 0 && !s.failed; count-- {
		if s.word() == 6 { // RPCSEC_GSS
			s.layout("oww")
		}
	}
}

func securityParms(s *Stream) {
	for count := s.word(); count > 0 && !s.failed; count-- {
		switch s.word() {
		case 1: // AUTH_SYS
			s.layout("woww[w]")
		case 6: // RPCSEC_GSS
			s.layout("woo")
		}
	}
}

func exchangeArgs(s *Stream) {
	switch s.word() {
	case 1: // SP4_MACH_CRED
		s.layout("bb")
	case 2: // SP4_SSV
		s.layout("bb[o][o]ww")
	}
	s.layout("[oot]")
}

func exchangeResults(s *Stream) {
	switch s.word() {
	case 1:
		s.layout("bb")
	case 2:
		s.layout("bbwwww[o]")
	}
	s.layout("loo[oot]")
}

func directoryDelegation(s *Stream) {
	if s.word() == 0 {
		s.layout("lsbbb")
	} else {
		s.layout("w")
	}
}

func layoutReturn(s *Stream) {
	if s.word() == 1 { // LAYOUTRETURN4_FILE
		s.layout("llso")
	}
}

func layoutRecall(s *Stream) {
	switch s.word() {
	case 1: // LAYOUTRECALL4_FILE
		s.layout("olls")
	case 2: // LAYOUTRECALL4_FSID
		s.layout("ll")
	}
}

func location(s *Stream) {
	switch s.word() {
	case 1, 2: // a name or URL
		s.layout("o")
	case 3: // a netaddr
		s.layout("oo")
	}
}

func locations(s *Stream) {
	for count := s.word(); count > 0 && !s.failed; count-- {
		location(s)
	}
}

func readPlus(s *Stream) {
	for count := s.word(); count > 0 && !s.failed; count-- {
		switch s.word() {
		case 0: // NFS4_CONTENT_DATA
			s.layout("lD")
		case 1: // NFS4_CONTENT_HOLE
			s.layout("ll")
		}
	}
}

func offload(s *Stream) {
	if s.word() == 0 {
		s.layout(writeResp)
	} else {
		s.layout("l")
	}
}
