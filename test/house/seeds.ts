import { configureGlobal } from "fast-check"

// A quick test is the same test everywhere: what nobody has seen yet is looked for by `npm run test:all`.
if (process.env.PROPERTY_SEED !== undefined) configureGlobal({ seed: Number(process.env.PROPERTY_SEED) })
