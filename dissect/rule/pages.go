package rule

// pages are what to say of each rule.
var pages = map[string]Page{}
