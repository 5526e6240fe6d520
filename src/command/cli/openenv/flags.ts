/** Defines the flags of `effect openenv`. */
import {
  allowHostFlag,
  argument,
  hostFlag,
  number,
  portFlag,
  text,
  texts,
  toggle,
  trustFlag,
  type FlagValues,
} from "../flags.ts"

export const flags = {
  env: argument(
    "env",
    "What is served: an env such as CartPole-v1, a kind of data set such as arithmetic, or a YAML file with an env or a data set",
  ),
  set: texts("set", "key=value", "Set a setting of the env or of the data set, e.g. num_tasks=1000; can be repeated"),
  port: portFlag(8000),
  host: hostFlag("a key"),
  allowHost: allowHostFlag,
  key: text(
    "key",
    "key",
    "The key that clients must send (default: if --host needs one, a new one is made and printed)",
  ),
  sessions: number("sessions", "atOnce", "The most sessions at the same time (default: 8)"),
  idleSeconds: number("idle-seconds", "count", "End a session that is not used for so many seconds (default: 600)"),
  seed: number("seed", "seed", "The seed of episodes for which a client sends none (default: 1)"),
  trust: trustFlag,
  json: toggle("json", "Print the address as one line of JSON"),
}

export type OpenEnvFlags = FlagValues<typeof flags>
