/**
 * Remembers what the user has permitted. Each request has a file, whose name is the request's digest, in a folder of the
 * user. A folder or a file that belongs to somebody else, or that others can write, is ignored.
 */
import { createHash } from "node:crypto"
import { lstatSync, mkdirSync, realpathSync, type Stats, writeFileSync } from "node:fs"
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path"
import { userHome } from "../../../../bin/userCache.js"
import { canonical } from "../../../base/text/canonical.ts"
import type { ProgramStart, TrustRequest } from "../../../base/trust/Trust.ts"

/** Returns the folder of the user's settings, by the conventions of the system. Throws if the user has no home. */
const settingsFolder = (): string => {
  const { XDG_CONFIG_HOME: chosen = "", APPDATA: roaming } = process.env
  if (isAbsolute(chosen)) return chosen
  return process.platform === "win32" && roaming !== undefined ? roaming : join(userHome(), ".config")
}

/** Returns the folder of the remembered requests. */
export const rememberedFolder = (): string => join(settingsFolder(), "effect-rl", "trusted")

/** Returns the folder in which a program starts, without symbolic links. */
export const startFolder = (cwd: string | undefined): string => {
  const folder = resolve(cwd ?? ".")
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

/** The variables with the folders in which the system and Python look for programs, libraries and modules. */
const searchPaths = ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"]

/**
 * Tells whether a program would be the same in any folder. With a relative or an empty element in a search path, such as
 * `PYTHONPATH=.`, code comes from the folder in which the program starts. Windows always looks there for programs.
 */
export const startsSameAnywhere = ({ isSameAnywhere }: ProgramStart): boolean =>
  isSameAnywhere === true &&
  process.platform !== "win32" &&
  process.env.PATH !== "" &&
  searchPaths.every((name) => (process.env[name] || "/").split(delimiter).every((folder) => isAbsolute(folder)))

/**
 * Returns the text by which a request is remembered: everything that decides what happens, and nothing else. A relative path
 * means something else in another folder, so the working folder is part of the text; the path of the config is not.
 */
export const contentOf = (request: TrustRequest): string => {
  if (request._tag !== "ProgramStart") {
    const { place: _place, ...content } = request
    return canonical(content)
  }
  const { _tag, command, cwd, variables, input } = request
  const folder = startsSameAnywhere(request) ? null : startFolder(cwd)
  return canonical({ _tag, command, folder, variables: variables.toSorted(), input })
}

const fileOf = (content: string): string => join(rememberedFolder(), createHash("sha256").update(content).digest("hex"))

/** Tells whether the home folder is the user's: under sudo, HOME may be the home of another user. */
const isOwnHome = (): boolean => {
  const stat = statOf(settingsFolder())
  return process.getuid === undefined || stat === undefined || stat.uid === process.getuid()
}

const statOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false })

/**
 * Tells whether a file or folder belongs to the user and nobody else can change it. On Windows always true, since the system
 * keeps the user's folder private.
 */
const isOwn = ({ uid, mode }: Stats): boolean =>
  process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0)

/** The two folders that contain only files of this program. */
const folders = (): ReadonlyArray<string> => [dirname(rememberedFolder()), rememberedFolder()]

const isOwnFolder = (path: string): boolean => {
  const stat = statOf(path)
  return stat !== undefined && stat.isDirectory() && isOwn(stat)
}

/** Tells whether the user has permitted this content before. */
export const isRemembered = (content: string): boolean => {
  try {
    const stat = statOf(fileOf(content))
    return folders().every(isOwnFolder) && stat !== undefined && stat.isFile() && isOwn(stat)
  } catch {
    return false
  }
}

/** Remembers that the user has permitted this content. If that fails, returns the reason. */
export const remember = (content: string): string | undefined => {
  try {
    if (!isOwnHome()) return `${settingsFolder()}: it belongs to another user`
    for (const folder of [...missingAbove(dirname(rememberedFolder())), ...folders()]) {
      if (statOf(folder) === undefined) mkdirSync(folder, { mode: 0o700 })
    }
    const wrong = folders().find((folder) => !isOwnFolder(folder))
    if (wrong !== undefined) return `${wrong}: expected a folder that only you can write to`
    if (statOf(fileOf(content)) === undefined) writeFileSync(fileOf(content), content, { flag: "wx", mode: 0o600 })
    return isRemembered(content) ? undefined : `${fileOf(content)}: expected a file that only you can write to`
  } catch (error) {
    // Another process may have remembered the same request at the same time.
    if (isRemembered(content)) return undefined
    return error instanceof Error ? error.message : String(error)
  }
}

/** Returns the missing folders on the path of this folder, the outermost first. */
const missingAbove = (folder: string): ReadonlyArray<string> => {
  const above = dirname(folder)
  return above === folder || statOf(above) !== undefined ? [] : [...missingAbove(above), above]
}
