/**
 * Finds what of a Harbor task needs a container: an image with software, a network policy, several machines, and whatever would
 * change this computer. Such a task is refused, because a score without its container would mean nothing.
 */
import { isPlain } from "../../../base/config/plain.ts"

/** Something that needs a container, and where it is written. */
export interface ContainerNeed {
  /** The file, relative to the task's folder. */
  readonly file: string
  /** The line, counted from 1; undefined if the file as a whole is the reason. */
  readonly line?: number | undefined
  /** The key of a setting; empty for files without settings. */
  readonly key: string
  readonly why: string
}

/** A step of a Dockerfile that copies files of the folder `environment`. */
export interface CopiedFiles {
  /** The files and folders, relative to the folder `environment`. */
  readonly from: ReadonlyArray<string>
  /** An absolute path, or one relative to the working directory at this step. */
  readonly to: string
  readonly workdir: string
  readonly line: number
}

/** What a Dockerfile does, if it needs no container. */
interface PlainDockerfile {
  readonly workdir: string | null
  readonly copies: ReadonlyArray<CopiedFiles>
}

/** Images that only have an operating system or the interpreter of a language. */
const plainImage = /^((docker\.io\/)?library\/)?(ubuntu|debian|python|node|bash)(:[\w.-]+)?(@sha256:[0-9a-f]{64})?$/

const isPlainImage = (image: unknown): boolean => typeof image === "string" && plainImage.test(image)

const isNone = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const imageNeed = (image: string): string => `the image ${JSON.stringify(image)} has software of its own`
const network = "it limits the network"
const user = "it runs as another user"

/** The settings of `task.toml` that need a container, unless their value is one that `isPlain` accepts. */
const settings: ReadonlyArray<{
  readonly key: string
  readonly isPlain?: (value: unknown) => boolean
  readonly why: (value: unknown) => string
}> = [
  { key: "steps", isPlain: isNone, why: () => "a task of several steps keeps one environment for all of them" },
  { key: "environment.docker_image", isPlain: isPlainImage, why: (image) => imageNeed(String(image)) },
  {
    key: "environment.os",
    isPlain: (os) => String(os).toLowerCase() === "linux",
    why: () => "it is for another operating system",
  },
  { key: "environment.gpus", isPlain: (gpus) => gpus === 0, why: () => "it needs a GPU" },
  { key: "environment.network_mode", isPlain: (mode) => mode === "public", why: () => network },
  { key: "environment.allow_internet", isPlain: (allowed) => allowed === true, why: () => network },
  { key: "environment.allowed_hosts", isPlain: isNone, why: () => network },
  { key: "environment.mcp_servers", isPlain: isNone, why: () => "its MCP servers run in the container" },
  { key: "environment.skills_dir", why: () => "its skills are in the container" },
  { key: "environment.healthcheck", why: () => "it starts a service" },
  { key: "agent.user", why: () => user },
  { key: "agent.network_mode", isPlain: (mode) => mode === "public", why: () => network },
  { key: "verifier.user", why: () => user },
  { key: "verifier.network_mode", isPlain: (mode) => mode === "public", why: () => network },
  { key: "verifier.environment", why: () => "its verifier has an environment of its own" },
  {
    key: "verifier.environment_mode",
    isPlain: (mode) => mode === "shared",
    why: () => "its verifier has an environment of its own",
  },
  { key: "verifier.collect", isPlain: isNone, why: () => "it collects files from services" },
]

const valueAt = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, name) => (isPlain(inner) ? inner[name] : undefined), value)

/** Returns the first setting of `task.toml` that needs a container. */
export const needInSettings = (
  toml: unknown,
  lineOf: (path: ReadonlyArray<string>) => number | undefined,
): ContainerNeed | undefined => {
  for (const { key, isPlain: accepts, why } of settings) {
    const path = key.split(".")
    const value = valueAt(toml, path)
    if (value === undefined || accepts?.(value) === true) continue
    return { file: "task.toml", line: lineOf(path), key, why: why(value) }
  }
  for (const section of ["environment", "verifier"]) {
    const env = valueAt(toml, [section, "env"])
    const name = Object.keys(isPlain(env) ? env : {}).find((one) => String(valueAt(env, [one])).includes("${"))
    if (name === undefined) continue
    const line = lineOf([section, "env", name]) ?? lineOf([section, "env"])
    const why = `${name} gets a value of the environment of this computer, which may be a key`
    return { file: "task.toml", line, key: `${section}.env`, why }
  }
  return undefined
}

const dockerfile = "environment/Dockerfile"

/** Instructions that change nothing for a task without a container. */
const harmless = /^(LABEL|CMD|MAINTAINER)$/

/** Reads a Dockerfile that names a plain image, sets the working directory and copies files. Anything else needs a container. */
export const readDockerfile = (text: string): PlainDockerfile | ContainerNeed => {
  let workdir: string | null = null
  let images = 0
  const copies: Array<CopiedFiles> = []
  for (const [at, untrimmed] of text.split("\n").entries()) {
    const line = untrimmed.trim()
    if (line === "" || line.startsWith("#")) continue
    const need = (why: string): ContainerNeed => ({ file: dockerfile, line: at + 1, key: "", why })
    const [word, ...rest] = line.split(/\s+/)
    const instruction = word.toUpperCase()
    if (line.endsWith("\\")) return need(`${instruction} continues on the next line, as only larger steps do`)
    if (instruction === "FROM") {
      images++
      if (rest.length !== 1 || images > 1 || !isPlainImage(rest[0])) return need(imageNeed(rest.join(" ")))
    } else if (instruction === "WORKDIR") {
      if (rest.length !== 1 || !/^\/[\w./-]*$/.test(rest[0])) return need("its working directory is no absolute path")
      workdir = rest[0]
    } else if (
      instruction === "COPY" &&
      rest.length > 1 &&
      rest.every((one) => /^[\w./-]+$/.test(one) && !one.startsWith("--"))
    ) {
      copies.push({ from: rest.slice(0, -1), to: rest[rest.length - 1], workdir: workdir ?? "/", line: at + 1 })
    } else if (!harmless.test(instruction)) return need(`${instruction} prepares an image`)
  }
  return { workdir, copies }
}

/** Commands that install software on the computer on which they run. */
const installing: ReadonlyArray<RegExp> = [
  /\b(apt-get|apt|apk|yum|dnf|pacman|sudo|docker|podman|uv|uvx)(?=\s)/,
  /\b(pip3?|npm|pnpm|yarn|conda|mamba|cargo|gem|brew)\s+(install|add|ci|i)\b/,
]
const downloader = /\b(curl|wget)\b/
const otherComputer = /https?:\/\/(?!localhost|127\.)/

/** Returns the part of a command that installs or downloads something. The searches take linear time, also in hostile texts. */
const installedBy = (command: string): string | undefined => {
  for (const pattern of installing) {
    const found = pattern.exec(command)?.[0]
    if (found !== undefined) return found.replace(/\s+/g, " ")
  }
  const download = downloader.exec(command)
  return download !== null && otherComputer.test(command.slice(download.index)) ? download[0] : undefined
}

/** Returns the first line of a script of the verifier that would install software. */
export const needInScript = (file: string, text: string): ContainerNeed | undefined => {
  for (const [at, line] of text.split("\n").entries()) {
    const command = line.replace(/(^|\s)#.*$/, "")
    const found = installedBy(command)
    if (found === undefined) continue
    return { file, line: at + 1, key: "", why: `${found} would install software on this computer` }
  }
  return undefined
}
