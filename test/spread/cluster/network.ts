import { execFileSync, spawn, spawnSync } from "node:child_process"
import type { Started } from "../../command/cli/effect.ts"
import { launcher } from "../../command/cli/launcher.ts"

/** Machines for tests: network namespaces of Linux, whose cables all end at a switch on this machine. */
export interface Network {
  /** The address of this machine at the switch. */
  readonly host: string
  readonly machines: ReadonlyArray<Machine>
  readonly remove: () => void
}

export interface Machine {
  readonly name: string
  /** Starts the command on this machine, with a process group of its own. */
  readonly start: (args: ReadonlyArray<string>, cwd: string) => Started
  /** Plugs the machine's cable in or out. */
  readonly plug: (isIn: boolean) => void
}

const ip = (...words: ReadonlyArray<string>): void => void execFileSync("ip", words, { stdio: "pipe" })

/** Says why this machine can't have network namespaces; undefined if it can. */
export const whyNoNetwork = (): string | undefined => {
  const name = `erl-probe-${process.pid}`
  const { error, status, stderr } = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" })
  if (error !== undefined) return `ip: ${error.message}`
  if (status !== 0) return stderr.trim()
  ip("netns", "del", name)
  return undefined
}

/** Makes a switch and so many machines at it. */
export const makeNetwork = (count: number): Network => {
  const id = process.pid % 10_000
  const subnet = `10.77.${process.pid % 250}`
  const bridge = `erlb${id}`
  ip("link", "add", bridge, "type", "bridge")
  ip("addr", "add", `${subnet}.1/24`, "dev", bridge)
  ip("link", "set", bridge, "up")
  const machines = Array.from({ length: count }, (_, at): Machine => {
    const name = `erl${id}-${at}`
    const cable = `erl${id}c${at}`
    ip("netns", "add", name)
    ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", cable, "master", bridge)
    ip("link", "set", cable, "up")
    const inside = (...words: ReadonlyArray<string>) => ip("-n", name, ...words)
    inside("link", "set", "lo", "up")
    inside("addr", "add", `${subnet}.${at + 10}/24`, "dev", "eth0")
    inside("link", "set", "eth0", "up")
    return {
      name,
      plug: (isIn) => ip("link", "set", cable, isIn ? "up" : "down"),
      start: (args, cwd) => {
        const { bin, env } = launcher()
        const words = ["netns", "exec", name, process.execPath, bin, ...args]
        const child = spawn("ip", words, { cwd, env, stdio: ["ignore", "pipe", "pipe"], detached: true })
        let stdout = ""
        let stderr = ""
        child.stdout.on("data", (chunk) => (stdout += String(chunk)))
        child.stderr.on("data", (chunk) => (stderr += String(chunk)))
        const ended = new Promise<Awaited<Started["ended"]>>((resolve) => {
          child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
        })
        return { child, ended }
      },
    }
  })
  return {
    host: `${subnet}.1`,
    machines,
    remove: () => {
      for (const { name } of machines) ip("netns", "del", name)
      ip("link", "del", bridge)
    },
  }
}
