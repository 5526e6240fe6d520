/** Makes envs that run in the Python scripts of this folder. */
import { fileURLToPath } from "node:url"
import type { Env } from "../Env.ts"
import { envOf } from "./command-node.ts"

/** The options of all envs in Python processes. */
export interface PythonOptions {
  /** The number of processes among which the envs of a batch are divided. Results don't depend on it. Default: 1. */
  readonly processes?: number
  /** The Python program. Default: `python3`. */
  readonly python?: string
  /** The number of seconds after which a step without a reply fails. Default: 60. */
  readonly timeoutSeconds?: number
  /**
   * The names of the environment variables that Python gets, besides `PATH`, `HOME`, `PYTHONPATH` and others that hold no
   * secrets, such as `MUJOCO_GL`. Default: none.
   */
  readonly variables?: ReadonlyArray<string>
}

/**
 * Makes the env with this id, which runs in a script of this folder; the script gets `envOptions`. `needs` are the
 * Python packages that the error names if the script cannot import them.
 */
export const pythonEnv = (
  { script, needs }: { readonly script: string; readonly needs: string },
  id: string,
  envOptions: object,
  { processes = 1, python = "python3", timeoutSeconds, variables }: PythonOptions,
): Env => {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const install = `install Python 3.9 or later, then: python3 -m pip install ${needs}; or set \`python\` to another program`
  return envOf({ command: [python, "-u", path], timeoutSeconds, variables, install }, id, envOptions, processes)
}
