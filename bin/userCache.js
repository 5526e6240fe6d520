// Opens folders for caches that nobody but the user can write to: what is read from a cache is executed, and V8 checks compiled
// code by the length of its source alone. bin/effect.js uses this before it loads anything else, and the library for its own.
import { chmodSync, lstatSync, mkdirSync, realpathSync } from "node:fs"
import { homedir } from "node:os"
import { dirname, isAbsolute, join, parse } from "node:path"

/** The user's id; undefined on Windows, where only the user can write below the folders that `userCaches` returns. */
const user = process.getuid?.()

/**
 * Returns the user's home. Throws if the variable HOME is empty or a relative path: it would name a folder of the working
 * directory, which may have been unpacked from somebody else's archive, and then holds files of the user that others wrote.
 */
export function userHome() {
  const home = homedir()
  if (!isAbsolute(home)) throw new Error(`HOME is ${JSON.stringify(home)}; expected an absolute path`)
  return home
}

/** Returns the folder for all caches of this user, by the platform's conventions. Throws if the user has no home. */
export function userCaches() {
  const { XDG_CACHE_HOME: xdg, LOCALAPPDATA: local } = process.env
  if (xdg !== undefined && isAbsolute(xdg)) return xdg
  if (process.platform === "win32") return local || join(userHome(), "AppData", "Local")
  return process.platform === "darwin" ? join(userHome(), "Library", "Caches") : join(userHome(), ".cache")
}

/** Lists a folder and those that it is in, from the root on. */
const pathTo = (folder) => (folder === parse(folder).root ? [folder] : [...pathTo(dirname(folder)), folder])

/**
 * Checks that only the user can change what a path means: the folder is the user's own, each folder on the way belongs to the
 * user or to root, and others can write to none of them, unless it is sticky as /tmp is. Returns the folder without symbolic
 * links on the way to it; throws if the folder is not safe, does not exist, or is a link itself.
 */
export function privateFolder(folder) {
  if (lstatSync(folder).isSymbolicLink()) throw new Error(`${folder} is a symbolic link`)
  const real = realpathSync(folder)
  if (user === undefined) return real
  // Below a folder of the user that others cannot enter, only the owners matter.
  let isClosed = false
  for (const one of pathTo(real)) {
    const { uid, gid, mode } = lstatSync(one)
    if (uid !== user && (uid !== 0 || one === real)) throw new Error(`${one} belongs to the user ${uid}`)
    isClosed ||= uid === user && (mode & 0o077) === 0
    const isSticky = (mode & 0o1000) !== 0 && one !== real
    // Many systems give each user a group of the same number, which has nobody else in it, and let it write by default.
    const others = gid === user && gid === process.getgid?.() && gid !== 0 ? 0o002 : 0o022
    if (!isClosed && !isSticky && (mode & others) !== 0) throw new Error(`others can write to ${one}`)
  }
  return real
}

/** Makes a folder that only the user can enter, if it is missing. Node's own recursion never ends below /proc. */
function makePrivate(folder) {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (error.code === "EEXIST") return
    if (error.code !== "ENOENT" || folder === dirname(folder)) throw error
    makePrivate(dirname(folder))
    mkdirSync(folder, { mode: 0o700 })
  }
}

/** Opens the folder `effect-rl` in another one, and a folder in it; makes them if they are missing. Throws if they are not safe. */
export function cacheIn(folder, name) {
  const own = join(folder, "effect-rl")
  makePrivate(own)
  const real = privateFolder(own)
  if (user !== undefined) chmodSync(real, 0o700)
  const inside = join(real, name)
  makePrivate(inside)
  return privateFolder(inside)
}

/** Opens a folder for one kind of cache of this user; undefined if there can be none that is safe. */
export function userCache(name) {
  try {
    return cacheIn(userCaches(), name)
  } catch {
    return undefined
  }
}

/** Tells whether a path is a regular file of the user. Files that others have put into a cache are not read. */
export function isOwnFile(path) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found !== undefined && found.isFile() && (user === undefined || found.uid === user)
}
