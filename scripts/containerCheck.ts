// Carries out the steps of the Dockerfile, one by one as the file has them, in a folder that `debootstrap` fills with
// Debian, and then uses the result: as its user, with its entry point and its health check. No container engine is needed,
// but root and `debootstrap` are; without them it says so and passes.
//   npx node scripts/containerCheck.ts
import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { homedir, tmpdir } from "node:os"
import { dirname, join, posix } from "node:path"
import { createInterface } from "node:readline"
import { type Copy, DockerfileParser, type Instruction } from "dockerfile-ast"

const root = join(import.meta.dirname, "..")
/** The base image that this script can make: Debian's smallest set of packages, Node and npm, and a user 1000. */
const baseImage = "node:24-bookworm-slim"

const show = (text: string): void => console.log(`container: ${text}`)

class Failure extends Error {}
/** Says that this machine lacks something, which is no failure of the Dockerfile. */
class Missing extends Error {}

const fails = (message: string): never => {
  throw new Failure(message)
}

const host = (command: string, args: ReadonlyArray<string>): string => {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 })
  if (status !== 0) return fails(`${command} ${args.join(" ")}: ${error?.message ?? stderr.slice(-2000)}`)
  return stdout.trim()
}

const has = (command: string): boolean => spawnSync("sh", ["-c", `command -v ${command}`]).status === 0

const missing = (): string | undefined => {
  if (process.platform !== "linux" || process.arch !== "x64") return "it needs Linux on x86_64"
  if (process.getuid?.() !== 0) return "it needs root"
  if (spawnSync("unshare", ["--mount", "--pid", "--net", "--fork", "true"]).status !== 0)
    return "it needs namespaces, which root may not make here"
  if (["debootstrap", "ip"].every(has)) return undefined
  if (process.env.CI === "true" && has("apt-get")) {
    spawnSync("apt-get", ["update"])
    spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "debootstrap", "iproute2"])
  }
  return ["debootstrap", "ip"].every(has) ? undefined : 'it needs "apt-get install debootstrap iproute2"'
}

/** The state of a stage: its file system, and what the instructions so far have set. */
interface Stage {
  readonly folder: string
  readonly env: Record<string, string>
  workdir: string
  user: string
  readonly last: Map<string, ReadonlyArray<string>>
}

const variables = (stage: Stage): ReadonlyArray<string> =>
  Object.entries(stage.env).map(([name, value]) => `${name}=${value}`)

/** Returns the arguments of `unshare` that start a command in the file system of a stage: with its own /proc, processes and, unless it builds, network. */
const argsIn = (stage: Stage, command: ReadonlyArray<string>, building: boolean): ReadonlyArray<string> => {
  const cache = host("npm", ["config", "get", "cache"])
  const mounts = [
    `mount -t proc proc ${stage.folder}/proc`,
    ...(building
      ? [`mkdir -p ${stage.folder}/root/.npm`, `mount --bind ${cache} ${stage.folder}/root/.npm`]
      : ["ip link set lo up"]),
  ]
  const namespaces = ["--mount", "--pid", "--fork", "--kill-child", ...(building ? [] : ["--net"])]
  const mounting = ["bash", "-ec", `${mounts.join("\n")}\nexec "$@"`, "-"]
  const env = ["env", "-i", ...variables(stage), ...(building ? buildEnv() : [])]
  const inside = ["chroot", `--userspec=${stage.user}`, stage.folder, ...env]
  return [...namespaces, ...mounting, ...inside, "sh", "-c", 'cd "$0" && exec "$@"', stage.workdir, ...command]
}

/** Returns the environment variables with which a build reaches npm's registry as this machine does. */
const buildEnv = (): ReadonlyArray<string> => [
  "HOME=/root",
  `npm_config_registry=${host("npm", ["config", "get", "registry"])}`,
  ...(process.env.NODE_EXTRA_CA_CERTS === undefined ? [] : ["NODE_EXTRA_CA_CERTS=/run/extra-ca-certificates"]),
]

const inStage = (stage: Stage, command: ReadonlyArray<string>, building = false): SpawnSyncReturns<string> =>
  spawnSync("unshare", argsIn(stage, command, building), { encoding: "utf8", maxBuffer: 1 << 28 })

const succeeds = (stage: Stage, command: ReadonlyArray<string>, building = false): string => {
  const { status, stdout, stderr } = inStage(stage, command, building)
  if (status !== 0) return fails(`${command.join(" ")}: exit code ${status}\n${`${stdout}${stderr}`.slice(-4000)}`)
  return stdout.trim()
}

/** Makes the base image. The packages of Debian are kept in the user's cache. */
const makeBase = (folder: string): void => {
  const archive = join(homedir(), ".cache/effect-rl/debian-bookworm.tar")
  if (!existsSync(archive)) {
    const fresh = `${folder}.new`
    const { status, stdout } = spawnSync("debootstrap", ["--variant=minbase", "bookworm", fresh], { encoding: "utf8" })
    if (status !== 0) throw new Missing(`debootstrap cannot make a Debian here: ${stdout.trim().split("\n").at(-1)}`)
    mkdirSync(dirname(archive), { recursive: true })
    // An archive that a killed process left incomplete must not be taken for a whole one.
    const incomplete = `${archive}.${process.pid}`
    host("tar", ["-C", fresh, "--exclude=./var/cache/apt/archives/*", "-cf", incomplete, "."])
    renameSync(incomplete, archive)
    rmSync(fresh, { recursive: true })
  }
  mkdirSync(folder)
  host("tar", ["-C", folder, "-xf", archive])
  host("chroot", [folder, "useradd", "--uid", "1000", "--create-home", "node"])
  const prefix = join(folder, "usr/local")
  cpSync(join(root, "node_modules/node/bin/node"), join(prefix, "bin/node"))
  mkdirSync(join(prefix, "lib/node_modules"), { recursive: true })
  host("cp", ["-R", join(host("npm", ["root", "-g"]), "npm"), join(prefix, "lib/node_modules")])
  host("ln", ["-s", "../lib/node_modules/npm/bin/npm-cli.js", join(prefix, "bin/npm")])
  if (existsSync("/etc/resolv.conf")) cpSync("/etc/resolv.conf", join(folder, "etc/resolv.conf"))
  const certificates = process.env.NODE_EXTRA_CA_CERTS
  if (certificates !== undefined) cpSync(certificates, join(folder, "run/extra-ca-certificates"), { dereference: true })
}

/** The paths in the build context: .dockerignore has to be a `*` and the exceptions from it. */
const context = (): ReadonlyArray<string> => {
  const lines = readFileSync(join(root, ".dockerignore"), "utf8").split("\n")
  const [first, ...exceptions] = lines.filter((line) => line !== "" && !line.startsWith("#"))
  const strange = exceptions.find((line) => !/^![\w.-]+(\/[\w.-]+)*$/.test(line))
  if (first !== "*" || strange !== undefined)
    return fails(`.dockerignore: expected * and !PATH, found ${strange ?? first}`)
  return exceptions.map((line) => line.slice(1)).filter((path) => existsSync(join(root, path)))
}

/** Whether the build context has this file or folder, whole. */
const inContext = (path: string): boolean => context().some((kept) => path === kept || path.startsWith(`${kept}/`))

const copying = ["-R", "--preserve=mode,links"]

const copyInto = (path: string, folder: string): void => {
  mkdirSync(folder, { recursive: true })
  host("cp", [...copying, path, folder])
}

const copy = (stage: Stage, instruction: Copy, stages: ReadonlyMap<string, Stage>): void => {
  const words = instruction.getArguments().map((argument) => argument.getValue())
  const target = words.pop() ?? ""
  const from = instruction.getFromFlag()?.getValue() ?? undefined
  const source = from === undefined ? undefined : (stages.get(from) ?? fails(`COPY --from=${from}: no such stage`))
  const into = join(stage.folder, posix.resolve(stage.workdir, target))
  if (source === undefined && words.includes(".")) {
    for (const path of context()) copyInto(join(root, path), join(into, dirname(path)))
    return
  }
  const paths = words.map((word) => {
    if (source !== undefined) return join(source.folder, word)
    return inContext(word) ? join(root, word) : fails(`COPY ${word}: .dockerignore leaves it out`)
  })
  if (target.endsWith("/") || target === "." || paths.length > 1) for (const path of paths) copyInto(path, into)
  else host("cp", [...copying, ...paths, into])
}

/** Replaces `$NAME` by the variables that were set before. */
const expanded = (value: string, env: Readonly<Record<string, string>>): string =>
  value.replace(/\$\{?(\w+)\}?/g, (_, name: string) => env[name] ?? "")

/** Returns the command of ENTRYPOINT, CMD and HEALTHCHECK, which have it as a JSON array at the end. */
const wordsOf = (instruction: Instruction): ReadonlyArray<string> => {
  const array = /\[.*\]$/s.exec(instruction.getRawArgumentsContent() ?? "")?.[0]
  return array === undefined
    ? fails(`${instruction.getKeyword()}: expected its command as a JSON array`)
    : JSON.parse(array)
}

const carryOut = (stage: Stage, instruction: Instruction, stages: ReadonlyMap<string, Stage>): void => {
  const keyword = instruction.getKeyword()
  const text = instruction.getRawArgumentsContent() ?? ""
  if (keyword === "RUN") {
    const began = Date.now()
    succeeds(stage, ["sh", "-c", text.replace(/\\\r?\n(\s*#.*\n)*/g, " ")], true)
    show(`RUN ${text.replace(/\s*\\?\n\s*/g, " ").slice(0, 70)} … ${((Date.now() - began) / 1000).toFixed(1)} s`)
  } else if (keyword === "COPY") copy(stage, instruction as Copy, stages)
  else if (keyword === "WORKDIR") {
    stage.workdir = posix.resolve(stage.workdir, text)
    mkdirSync(join(stage.folder, stage.workdir), { recursive: true })
  } else if (keyword === "ENV") {
    for (const [, name = "", value = ""] of text.matchAll(/(\w+)=(\S+)/g)) stage.env[name] = expanded(value, stage.env)
  } else if (keyword === "USER") stage.user = text.includes(":") ? text : `${text}:${text}`
  else if (["ENTRYPOINT", "CMD", "HEALTHCHECK"].includes(keyword)) {
    stage.last.set(keyword, wordsOf(instruction))
  } else if (keyword !== "EXPOSE" && keyword !== "LABEL") fails(`${keyword}: this check does not know the instruction`)
}

const build = (work: string): Stage => {
  const base = join(work, "base")
  makeBase(base)
  const stages = new Map<string, Stage>()
  let stage: Stage | undefined
  for (const instruction of DockerfileParser.parse(readFileSync(join(root, "Dockerfile"), "utf8")).getInstructions()) {
    if (instruction.getKeyword() === "FROM") {
      const [image, , name = `${stages.size}`] = instruction.getArguments().map((argument) => argument.getValue())
      if (image !== baseImage) fails(`FROM ${image}: this check can only make ${baseImage}`)
      const folder = join(work, name)
      host("cp", ["-a", "--reflink=auto", base, folder])
      const env = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }
      stage = { folder, env, workdir: "/", user: "0:0", last: new Map() }
      stages.set(name, stage)
    } else if (stage === undefined) fails(`${instruction.getKeyword()}: expected FROM first`)
    else carryOut(stage, instruction, stages)
  }
  return stage ?? fails("the Dockerfile has no stage")
}

const training = `import { CartPole, Ppo, Train } from "effect-rl"
import { Effect } from "effect"
export default Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 2048 }).pipe(Effect.tap(Effect.void))
`

/** Uses the image as somebody would: trains with a file of theirs, then serves the page and asks the health check. */
const use = async (stage: Stage): Promise<void> => {
  const entry = stage.last.get("ENTRYPOINT") ?? fails("the Dockerfile has no ENTRYPOINT")
  const health = stage.last.get("HEALTHCHECK") ?? fails("the Dockerfile has no HEALTHCHECK")
  const help = succeeds(stage, [...entry, ...(stage.last.get("CMD") ?? [])])
  if (!help.includes("SUBCOMMANDS")) fails(`CMD: expected the command's help, found ${help.slice(0, 200)}`)
  if (succeeds(stage, ["id", "-u"]) === "0") fails("USER: the image runs as root")
  for (const folder of ["/node_modules", "/usr/local", "/etc"]) {
    if (inStage(stage, ["touch", `${folder}/new`]).status === 0) fails(`the user of the image may write in ${folder}`)
  }
  // Clusters need this package.
  succeeds(stage, ["node", "--input-type=module", "--eval", 'await import("@effect/sql-pg")'])
  writeFileSync(join(stage.folder, "work/train.ts"), training)
  const digest = /^digest .*/m.exec(succeeds(stage, [...entry, "run", "train.ts", "--seed", "1"]))?.[0]
  show(`trained as user ${stage.user}: ${digest ?? fails("the training printed no digest")}`)

  const server = spawn("unshare", argsIn(stage, [...entry, "ui", "results", "--host", "0.0.0.0"], false))
  try {
    // The parts of the command before it print nothing, so the first line of stderr says that it serves.
    const first = await new Promise<string>((resolve) => {
      createInterface({ input: server.stderr }).once("line", resolve)
      server.once("exit", (code) => resolve(`exit code ${code}`))
    })
    if (!first.startsWith("serving")) fails(`effect ui: expected that it serves, found "${first}"`)
    const [pid = ""] = readdirSync(`/proc/${server.pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${server.pid}/task/${task}/children`, "utf8").trim().split(" "),
    )
    const [user = "", group = ""] = stage.user.split(":")
    const inside = ["--target", pid, "--pid", "--net", "--mount", "--root", "--setuid", user, "--setgid", group]
    const check = () =>
      spawnSync("nsenter", [...inside, "env", "-i", ...variables(stage), ...health], { encoding: "utf8" })
    const healthy = check()
    if (healthy.status !== 0) fails(`HEALTHCHECK: expected a healthy page, found ${healthy.stderr}`)
    process.kill(Number(pid), "SIGSTOP")
    const frozen = check()
    process.kill(Number(pid), "SIGCONT")
    if (frozen.status !== 1) fails("HEALTHCHECK: expected that it reports a frozen server")
    show(`effect ui is healthy; frozen, the health check says "${frozen.stderr.trim()}"`)
    const ended = new Promise<number | null>((resolve) => server.once("exit", resolve))
    process.kill(Number(pid), "SIGTERM")
    show(`effect ui as process 1 ends upon SIGTERM with code ${await ended}`)
  } finally {
    server.kill("SIGKILL")
  }
}

const reason = missing()
if (reason !== undefined) show(`skipped, ${reason}`)
else {
  const work = mkdtempSync(join(tmpdir(), "effect-container-"))
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      rmSync(work, { recursive: true, force: true })
      process.exit(1)
    })
  try {
    const image = build(work)
    const megabytes = (path: string) =>
      Math.round(Number(host("du", ["-s", "--block-size=1000", path]).split("\t")[0]) / 1e3)
    show(`adds ${megabytes(join(image.folder, "node_modules"))} MB to ${baseImage}`)
    await use(image)
  } catch (error) {
    if (error instanceof Missing) show(`skipped, ${error.message}`)
    else if (error instanceof Failure) {
      show(error.message)
      process.exitCode = 1
    } else throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
