package report

import (
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// This file replaces what identifies people, machines and files, before a Report collects anything, so that no part of
// the page can contain it.

// Pseudonyms replaces what identifies people, machines and files.
type Pseudonyms interface {
	Address(string) string
	Path(string) string   // also of machines
	Owner(string) string  // of principals
	Handle(string) string // of files, in hexadecimal or in their short form
	ID(uint32) uint32     // of users and groups
	Point(string) string  // of capture points
}

// replaced returns the pseudonym of a value that may be unknown.
func replaced[T any](v record.Opt[T], pseudonym func(T) T) record.Opt[T] {
	if known, is := v.Get(); is {
		return record.Some(pseudonym(known))
	}
	return v
}

// hiddenPath returns the function that returns the pseudonym of a path, which may begin with the short form of a handle.
func hiddenPath(by Pseudonyms) func(text string) string {
	return func(text string) string {
		if !strings.HasPrefix(text, "fh:") {
			return by.Path(text)
		}
		handle, rest, more := strings.Cut(text, "/")
		handle = by.Handle(handle)
		if more {
			return handle + "/" + by.Path(rest)
		}
		return handle
	}
}

// hiddenTransaction returns a transaction, with pseudonyms if the page has these. The result is valid as long as r is.
func (p *Report) hiddenTransaction(r *record.Transaction) *record.Transaction {
	if p.hide == nil {
		return r
	}
	c, path := *r, hiddenPath(p.hide)
	c.Client, c.Server = replaced(r.Client, p.hide.Address), replaced(r.Server, p.hide.Address)
	c.UID, c.GID = replaced(r.UID, p.hide.ID), replaced(r.GID, p.hide.ID)
	c.Machine, c.Principal = replaced(r.Machine, p.hide.Path), replaced(r.Principal, p.hide.Owner)
	c.File, c.FileFrom, c.MountPath = replaced(r.File, path), replaced(r.FileFrom, path), replaced(r.MountPath, path)
	c.FileHandle = replaced(r.FileHandle, p.hide.Handle)
	c.FileUses = slices.Clone(r.FileUses)
	for i := range c.FileUses {
		u := &c.FileUses[i]
		for _, text := range []*string{&u.File, &u.From} {
			if *text != "" {
				*text = path(*text)
			}
		}
		if u.Handle != "" {
			u.Handle = p.hide.Handle(u.Handle)
		}
	}
	c.RPC = nil // arguments and results
	c.RenamePoints(p.hide.Point)
	return &c
}

// hiddenConnection does the same with a connection.
func (p *Report) hiddenConnection(r *record.Connection) *record.Connection {
	if p.hide == nil {
		return r
	}
	c := *r
	c.Client.Address, c.Server.Address = replaced(r.Client.Address, p.hide.Address), replaced(r.Server.Address, p.hide.Address)
	c.RenamePoints(p.hide.Point)
	return &c
}

// hiddenFinding does the same with a finding. No message of a finding contains addresses or names.
func (p *Report) hiddenFinding(r *record.Finding) *record.Finding {
	if p.hide == nil {
		return r
	}
	c := *r
	c.Client, c.Server = replaced(r.Client, p.hide.Address), replaced(r.Server, p.hide.Address)
	c.RenamePoints(p.hide.Point)
	return &c
}
