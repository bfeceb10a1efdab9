package transaction

// NoAnswer is shared by all transactions without Reply, and Still by all segments in which nothing
// moved. They are never written to.
var (
	NoAnswer = &noAnswer
	Still    = new(segment).Transferred()
)

// MaxUnused is the maximum number of transactions whose storage is used again.
var MaxUnused = &maxUnused
