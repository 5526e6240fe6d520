import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileOfAlgorithm } from "../../../scripts/settings.ts"
import { root } from "../../command/cli/effect.ts"

/**
 * `import * as Graph from "../graph/ops.ts"` becomes `import { Graph } from "effect-rl"`, and
 * `import { ConfigError } from "../config/Config.ts"` becomes `import { ConfigError } from "effect-rl"`.
 */
const withPublicImports = (text: string): string =>
  text
    .replace(/^import (?:type )?\* as (\w+) from "\.\.\/[^"]+"$/gm, 'import { $1 } from "effect-rl"')
    .replace(/^(import \{[^}]+\}) from "\.\.\/[^"]+"$/gm, '$1 from "effect-rl"')

/** Algorithms that somebody copied into a project of their own, with all imports of ours taken from `effect-rl`. */
export const copiedAlgorithms: ReadonlyArray<{ readonly file: string; readonly text: string }> = [
  "A2c",
  "Ddqn",
  "Dqn",
  "Sac",
  "Td3",
].map((name) => ({
  file: `My${name}.ts`,
  text: withPublicImports(readFileSync(join(root, fileOfAlgorithm(name)), "utf8")),
}))
