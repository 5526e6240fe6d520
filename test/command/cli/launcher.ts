/** Says what a test starts as the command `effect`: the sources, or by `--mode all` the package that was built from them. */
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** A program for Node, and the environment in which it must be started. */
export interface Launcher {
  readonly bin: string
  readonly env: NodeJS.ProcessEnv
}

/** The command from the sources, for tests that change them, look at which of them are loaded, or compare with this process. */
export const fromSources = (env: NodeJS.ProcessEnv = process.env): Launcher => ({
  bin: join(root, "bin/effect.js"),
  env,
})

/**
 * The command that tests start. A process loads the package four times as fast as the sources. A hook lets programs in the
 * checkout import the package, too.
 */
export const launcher = (env: NodeJS.ProcessEnv = process.env): Launcher => {
  const { EFFECT_RL_TEST_HOOK: hook, EFFECT_RL_TEST_LAUNCHER: bin } = process.env
  if (bin === undefined || hook === undefined) return fromSources(env)
  return { bin, env: { ...env, NODE_OPTIONS: `${env.NODE_OPTIONS ?? ""} --import ${hook}` } }
}
