package transaction

// NoAnswer and Still are what many transactions and segments share, and nobody
// writes to.
var (
	NoAnswer = &noAnswer
	Still    = &noTransfer
)
