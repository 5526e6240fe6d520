import { globSync } from "node:fs"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns the path of an example from the root by the name of its file, which is in one of the folders of `examples/`. */
export const examplePath = (file: string): string => {
  const paths = globSync(`examples/**/${file}`, { cwd: root, exclude: ["**/node_modules"] })
  if (paths.length !== 1) throw new Error(`examples/: expected one file named ${file}, found ${paths.length}`)
  return paths[0].replaceAll("\\", "/")
}
