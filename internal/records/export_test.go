package records

import "reflect"

// Fast returns the record of a line that has the form in which rdmadump writes it, and nil for any
// other line.
func Fast(line []byte) any {
	name, err := TypeOf(line)
	t := types[name]
	if err != nil || t == nil {
		return nil
	}
	v := reflect.New(t)
	if !decode(line, v) || checkRecord(v) != nil {
		return nil
	}
	return v.Interface()
}

// Slow returns what [Parse] returns, only by encoding/json.
func Slow(line []byte) (any, error) {
	name, err := TypeOf(line)
	t := types[name]
	if err != nil || t == nil {
		return nil, err
	}
	return parse(name, line, t)
}
