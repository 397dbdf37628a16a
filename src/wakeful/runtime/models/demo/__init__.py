"""The demo model: answers by rules, needs no key and no network."""
