package suite_test

import (
	"strings"
	"sync"
)

// collected is a handler of warnings that keeps them.
type collected struct {
	lock  sync.Mutex
	texts []string
}

// HandleWarningHeader takes note of a warning.
func (c *collected) HandleWarningHeader(_ int, _, text string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.texts = append(c.texts, text)
}

func (c *collected) all() []string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return append([]string(nil), c.texts...)
}

func (c *collected) has(part string) bool {
	for _, text := range c.all() {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
