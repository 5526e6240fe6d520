// Bundles the package: `npm run build` runs this, after tsc.
import { bundleEffect } from "./effect.ts"
import { bundleLibrary, bundlePrograms } from "./library.ts"

await bundleEffect(await bundleLibrary())
await bundlePrograms()
