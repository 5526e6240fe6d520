import { execFileSync, type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../servers/listen.ts"

/** The folder with Postgres' programs: Debian keeps them out of the path. */
const programs = (): string | undefined => {
  const debian = "/usr/lib/postgresql"
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  return [...versions.map((version) => join(debian, version, "bin")), "/usr/local/bin", "/usr/bin"].find((folder) =>
    ["initdb", "postgres"].every((program) => existsSync(join(folder, program))),
  )
}
const bin = programs()

/** Postgres refuses to run as root, so a server that root starts belongs to this user of Debian and most systems. */
const nobody = { uid: 65534, gid: 65534 }
const isRoot = process.getuid?.() === 0

export const hasPostgres = bin !== undefined

/** A server of its own, with its data in a temporary folder. */
export interface Postgres {
  readonly url: string
  readonly password: string
  /** Ends the server, as its machine would when it is switched off in order: clients see closed connections. */
  readonly halt: () => Promise<void>
  readonly resume: () => Promise<void>
  /** Ends the server for good, and removes its data. */
  readonly remove: () => Promise<void>
}

/** Starts a server on this machine. `host` is an address of this machine; the user `effect` needs the password. */
export const startPostgres = async (host = "127.0.0.1"): Promise<Postgres> => {
  if (bin === undefined) throw new Error("Postgres is not installed here; on Debian: apt-get install postgresql")
  const folder = mkdtempSync(join(tmpdir(), "effect-rl-postgres-"))
  const owner = isRoot ? nobody : {}
  const data = join(folder, "data")
  if (isRoot) execFileSync("chown", [`${nobody.uid}:${nobody.gid}`, folder])
  const password = "s3cret"
  const passwordFile = join(folder, "password")
  writeFileSync(passwordFile, password)
  execFileSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "effect", "-A", "scram-sha-256", "--pwfile", passwordFile, "-E", "UTF8", "--no-sync"],
    { ...owner, cwd: "/", stdio: "pipe", env: { PATH: process.env.PATH, LC_ALL: "C" } },
  )
  const sockets = join(folder, "sockets")
  mkdirSync(sockets, { mode: 0o777 })
  if (isRoot) execFileSync("chown", [`${nobody.uid}:${nobody.gid}`, sockets])
  writeFileSync(join(data, "pg_hba.conf"), "local all all scram-sha-256\nhost all all all scram-sha-256\n")
  const port = await freePort(host)
  let server: ChildProcess | undefined
  const resume = (): Promise<void> =>
    new Promise((resolve, reject) => {
      let output = ""
      const child = spawn(
        join(bin, "postgres"),
        ["-D", data, "-p", String(port), "-h", host, "-k", sockets, "-c", "max_connections=200", "-c", "fsync=off"],
        { ...owner, cwd: "/", stdio: ["ignore", "ignore", "pipe"], env: { PATH: process.env.PATH, LC_ALL: "C" } },
      )
      server = child
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        output += text
        if (output.includes("ready to accept connections")) resolve()
      })
      child.once("exit", (code) => reject(new Error(`postgres ended with ${code}: ${output}`)))
    })
  const halt = (): Promise<void> =>
    new Promise((resolve) => {
      if (server === undefined || server.exitCode !== null) return resolve()
      server.removeAllListeners("exit")
      server.once("exit", () => resolve())
      // SIGINT is Postgres' fast shutdown: it ends all sessions.
      server.kill("SIGINT")
    })
  await resume()
  return {
    url: `postgres://effect:${password}@${host}:${port}/postgres`,
    password,
    halt,
    resume,
    remove: async () => {
      await halt()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
