/**
 * Distinguishes the user's own files from files that are only stored on this computer. A file that the user names on the
 * command line is the user's own if it is in the working directory and not in a run's folder, and the user is its owner.
 * Everything else is data: a run's config, a file in another folder, an object in a bucket.
 */
import { existsSync, realpathSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { basename, dirname, join, relative, sep } from "node:path"
import { Effect } from "effect"
import * as Layout from "../../../run/Layout.ts"
import { defaultResultsDir } from "../flags.ts"
import { isPresetFile } from "../presets/packaged.ts"
import { isConfig } from "../userCode/yamlFile.ts"
import { ConfigsAreOwn } from "./commandTrust.ts"

/** Returns the path without symbolic links; undefined if there is no such file. */
const realPath = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

const isInside = (folder: string, path: string): boolean => {
  const from = relative(folder, path)
  return from !== "" && from !== ".." && !from.startsWith(`..${sep}`)
}

/**
 * Tells whether a file belongs to a run: it is in `results/`, it has the name of a run's config, or a folder around it (up to
 * `top`) contains a run's config.
 */
const isInRun = (file: string, top: string): boolean => {
  const results = realPath(defaultResultsDir)
  if (basename(file) === Layout.config || (results !== undefined && isInside(results, file))) return true
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (folder !== homedir() && existsSync(join(folder, Layout.config))) return true
    if (folder === top || folder === dirname(folder)) return false
  }
}

const belongsToUser = (file: string): boolean =>
  process.getuid === undefined || statSync(file, { throwIfNoEntry: false })?.uid === process.getuid()

/** Tells whether a config that the user named is one of the user's own files. */
export const isOwnConfig = (named: string): boolean => {
  const [here, file] = [realPath("."), realPath(named)]
  if (here === undefined || file === undefined) return false
  return isInside(here, file) && !isInRun(file, here) && belongsToUser(file)
}

/** Tells whether the user runs a module as with `node FILE`: any module that the user named, except one in a run's folder. */
export const isOwnCode = (named: string): boolean => {
  const file = realPath(named)
  return file !== undefined && !isInRun(file, realPath(".") ?? "")
}

/**
 * Tells whether all files of a command are the user's own; this package's presets count as such. If the training's file is a
 * module (by the ending of its name), it is judged as code; the configs that other flags name are judged as configs, whatever
 * their names.
 */
export const areOwnFiles = (file: string, configs: ReadonlyArray<string>): boolean =>
  (isPresetFile(file) || (isConfig(file) ? isOwnConfig(file) : isOwnCode(file))) && configs.every(isOwnConfig)

/** Runs an effect with files that the user named. The programs in them are permitted if all files are the user's own. */
export const withConfigs =
  (file: string, configs: ReadonlyArray<string> = [], isOwn = true) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => Effect.provideService(effect, ConfigsAreOwn, isOwn && areOwnFiles(file, configs)))
