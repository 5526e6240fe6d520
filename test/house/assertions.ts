import { chai } from "vitest"

// The compiler finds a misspelt assertion; chai's own search for it takes three quarters of the time of an assertion.
chai.config.useProxy = false
