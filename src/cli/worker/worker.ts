/** Defines the subcommand `effect worker`, which makes this machine do jobs of a cluster. */
import { availableParallelism } from "node:os"
import { Effect, Option } from "effect"
import * as Flag from "effect/cli/Flag"
import { platform } from "../../node.ts"
import { number, subcommand, text, toggle } from "../flags.ts"
import { usageError, writeOut } from "../output/output.ts"
import { sweepHandler } from "../sweep/job.ts"
import { clusterModule, say } from "./cluster.ts"

export const worker = subcommand(
  "worker",
  {
    description:
      "Add this machine to a cluster: do the jobs of effect eval --cluster and effect run --cluster, until Ctrl-C, which " +
      "hands unfinished jobs to the other workers. All machines need the same version of this package, the same files " +
      "at the same paths, and, for sweeps, the same results folder. Anyone who can use the database can run programs " +
      "on this machine.",
    short: "Add this machine to a cluster",
    examples: {
      "effect worker --join postgres://rl:secret@db/rl": "Do jobs, one per core at a time",
      "effect worker --join postgres://rl:secret@db/rl --slots 64": "Do more at a time, if they only wait for models",
      "effect worker --join postgres://rl:secret@db/rl --list": "Show who works on what, without joining",
    },
  },
  {
    join: Flag.String("join").pipe(
      Flag.withMetavar("postgres://…"),
      Flag.withDescription(
        "The address of the cluster's database: postgres://user:password@host/db. Without a password in it, that of the environment variable PGPASSWORD is taken",
      ),
    ),
    slots: number("slots", "How many jobs to do at a time (default: one per core)"),
    address: text(
      "address",
      "host:port",
      "Where the other workers reach this one (default: the address by which this machine reaches the database, and a free port)",
    ),
    list: toggle("list", "Print the processes of the cluster and their jobs, and do not join it"),
    quiet: toggle("quiet", "Print only problems with the cluster, not each job"),
  },
  Effect.fnUntraced(function* (input) {
    if (input.list) return yield* listMembers(input.join)
    const slots = Option.getOrElse(input.slots, () => Math.max(1, availableParallelism()))
    if (slots < 1) return yield* usageError(`--slots ${slots}: expected at least 1`)
    const address = Option.isNone(input.address) ? undefined : yield* parseAddress(input.address.value)
    const { worker } = yield* clusterModule
    const { evaluationHandler } = yield* Effect.promise(() => import("../../evaluate/worker.ts"))
    yield* Effect.gen(function* () {
      const handlers = [yield* evaluationHandler, yield* sweepHandler]
      return yield* worker({ url: input.join, say, quiet: input.quiet, slots, address, handlers })
    }).pipe(Effect.scoped, Effect.provide(platform))
  }),
)

/** Prints a line for each process of the cluster, and one for each job that a worker is doing. */
const listMembers = Effect.fnUntraced(function* (url: string) {
  const { members } = yield* clusterModule
  const lines = (yield* members({ url, say })).flatMap(({ role, name, version, slots, jobs, finished }) => {
    const does = role === "worker" ? `${jobs.length} of ${slots} slots busy` : `waits for ${jobs.length} jobs`
    const own = role === "worker" ? jobs.map((job) => `  ${job}`) : []
    return [`${role} ${name}: ${does}, ${finished} jobs done, version ${version}`, ...own]
  })
  yield* writeOut(lines.length === 0 ? "nobody has joined\n" : `${lines.join("\n")}\n`)
}, Effect.scoped)

const parseAddress = (text: string) => {
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? []
  return host === undefined || Number(port) > 65535 || Number(port) === 0
    ? Effect.fail(usageError(`--address ${text}: expected host:port`))
    : Effect.succeed({ host, port: Number(port) })
}
