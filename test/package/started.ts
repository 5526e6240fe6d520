/** Builds the package before the tests, so that the processes that they start run it; see `test/command/cli/launcher.ts`. */
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { builtPackage } from "./built.ts"

/** vitest calls this before it starts the processes of the tests, which inherit these variables. */
export const setup = (): void => {
  const { hook, installed } = builtPackage()
  process.env.EFFECT_RL_TEST_LAUNCHER = join(installed, "bin/effect.js")
  process.env.EFFECT_RL_TEST_HOOK = pathToFileURL(hook).href
}
