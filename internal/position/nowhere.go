package position

// nowhere is the position that no server ever reaches: what [Position.Merge]
// makes of positions that cannot be compared. Unlike the zero Position it does
// not get lost when it is merged with others.
type nowhere struct{}

func (nowhere) kind() Kind                 { return Nowhere }
func (nowhere) empty() bool                { return false }
func (nowhere) equal(value) bool           { return true }
func (nowhere) contains(value) bool        { return false }
func (nowhere) exceeds(value) bool         { return false }
func (nowhere) includes(value) bool        { return false }
func (nowhere) merge(value) value          { return nowhere{} }
func (nowhere) token() value               { return nowhere{} }
func (nowhere) appendText(b []byte) []byte { return append(b, "nowhere"...) }
