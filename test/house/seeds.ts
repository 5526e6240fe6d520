import { configureGlobal } from "fast-check"
import { tries } from "./tries.ts"

// A quick test is the same test everywhere: what nobody has seen yet is looked for by `npm run test:all`.
configureGlobal({
  // The number of tries that fast-check makes unless a law says another one.
  numRuns: tries(100),
  ...(process.env.PROPERTY_SEED === undefined ? {} : { seed: Number(process.env.PROPERTY_SEED) }),
})
