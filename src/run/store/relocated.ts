import { locate, type Places } from "../Layout.ts"
import type { FileTree } from "./FileTree.ts"

/** Wraps a tree so that some files and folders are stored elsewhere. Callers still use the usual paths. */
export const relocated = (tree: FileTree, places: Places): FileTree => {
  if (Object.keys(places).length === 0) return tree
  const at = (path: string): string => locate(places, path)
  return {
    root: tree.root,
    read: (path) => tree.read(at(path)),
    stream: (path, part) => tree.stream(at(path), part),
    readText: (path) => tree.readText(at(path)),
    write: (path, contents, how) => tree.write(at(path), contents, how),
    append: (path, contents) => tree.append(at(path), contents),
    appending: (path) => tree.appending(at(path)),
    truncate: (path, size) => tree.truncate(at(path), size),
    sync: (path) => tree.sync(at(path)),
    exists: (path) => tree.exists(at(path)),
    size: (path) => tree.size(at(path)),
    list: (path) => tree.list(at(path)),
    remove: (path) => tree.remove(at(path)),
    writeDirectory: (path, files, last) => tree.writeDirectory(at(path), files, last),
    link: (path, target) => tree.link(at(path), target),
    target: (path) => tree.target(at(path)),
    repair: (path) => tree.repair(at(path)),
  }
}
