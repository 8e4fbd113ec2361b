package e2e

func disagree() []scenario { return nil }
