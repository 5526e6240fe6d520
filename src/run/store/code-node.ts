/**
 * Reads the code of a training for its run's folder: the file that the user named and the local files that it imports. The
 * copy is a record, which no command executes.
 */
import { lstatSync, readFileSync, realpathSync } from "node:fs"
import { dirname, join, relative, resolve, sep } from "node:path"
import { digestOfBytes } from "../../spread/cluster/sent/loadedModules-node.ts"
import type { Code, CodeFile, SavedCode } from "./RunStore.ts"

/** The limits of the saved code: the number of files, and their bytes in all. */
const mostFiles = 200
const mostBytes = 1 << 20

/**
 * Matches the paths of other local files in a module: of `import`, `export … from`, `import("…")`, `require("…")` and
 * `createRequire(…)("…")`. It may also match such words in a comment or a text; at worst, one file too many is saved. Files that
 * the program only reads are not matched: they may hold keys.
 */
const localImport = /(?:\b(?:from|import|require)\s*\(?|\)\s*\()\s*["'](\.{1,2}\/[^"'\n]+)["']/g

/** The endings that a path of a module may lack. */
const endings = ["", ".ts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js"]

/** A file of the program, and its path on disk. */
interface ReadFile extends CodeFile {
  readonly source: string
}

/** A program, as it is on disk now. */
interface Program extends SavedCode {
  readonly files: ReadonlyArray<ReadFile>
}

/** Returns the training file and the local files that it imports, directly or not, but no packages. */
export const codeOf = (file: string): Program => {
  const queue = [resolve(file)]
  const read = new Map<string, Uint8Array>()
  let [bytes, leftOut] = [0, 0]
  for (const path of queue) {
    const size = sizeOf(path)
    if (size === undefined) continue
    if (read.size >= mostFiles || bytes + size > mostBytes) {
      leftOut++
      continue
    }
    const content = readFileSync(path)
    bytes += content.length
    read.set(path, content)
    for (const [, specifier] of content.toString("utf8").matchAll(localImport)) {
      const named = resolve(dirname(path), specifier.replace(/[?#].*$/, ""))
      const imported = endings.map((ending) => named + ending).find((one) => sizeOf(one) !== undefined)
      if (imported === undefined) continue
      if (!imported.includes(`${sep}node_modules${sep}`) && !queue.includes(imported)) queue.push(imported)
    }
  }
  const root = commonFolder([...read.keys()])
  const files = [...read].map(([path, content]) => ({
    path: relative(root, path).split(sep).join("/"),
    source: path,
    content,
  }))
  return { files, leftOut }
}

/** Adds the files of a program to the origin of the code. The code counts as changed if git does not track one of them. */
export const withProgram = (provenance: Code, { files }: Program, tracked: ReadonlySet<string>): Code => ({
  ...provenance,
  dirty: provenance.dirty || files.some(({ source }) => !tracked.has(source)),
  code: files.map(({ path, source, content }) => ({
    path,
    sha256: digestOfBytes(content),
    tracked: tracked.has(source),
  })),
})

/** Returns the paths of a program's files that differ from their copies in a run's folder, or have none there. */
export const differingFrom = (folder: string, { files }: Program): ReadonlyArray<string> =>
  files.flatMap(({ path, content }) => {
    const copy = join(folder, path)
    return sizeOf(copy) === content.length && Buffer.compare(readFileSync(copy), content) === 0 ? [] : [path]
  })

/** Returns the size of a file; undefined if there is none, or if a link leads to a package. */
const sizeOf = (path: string): number | undefined => {
  try {
    if (lstatSync(path).isSymbolicLink() && realpathSync(path).includes(`${sep}node_modules${sep}`)) return undefined
    const stat = lstatSync(realpathSync(path))
    return stat.isFile() ? stat.size : undefined
  } catch {
    return undefined
  }
}

/** Returns the innermost folder that holds all paths. */
const commonFolder = (paths: ReadonlyArray<string>): string => {
  let folder = dirname(paths[0] ?? "/")
  const isAbove = (path: string): boolean => path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`)
  // Files on two drives have no common folder: then the root of the first must do.
  while (!paths.every(isAbove) && folder !== dirname(folder)) folder = dirname(folder)
  return folder
}
