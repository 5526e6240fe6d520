/** Provides `ForeignEnvs`, the service that makes the envs of other programs that a config names. */
import { Layer } from "effect"
import { command } from "./command-node.ts"
import { env as gymnasium } from "./gymnasium-node.ts"
import { fromServer } from "../openenv/OpenEnv.ts"
import { ForeignEnvs } from "./options.ts"
import { env as pettingZoo } from "./pettingzoo-node.ts"

/** Gives the wrappers of a config their type; its Schema accepts any JSON as a wrapper's name. */
const named = (wrappers: ReadonlyArray<{ readonly [argument: string]: unknown }>) =>
  wrappers.map((wrapper) => ({ ...wrapper, name: String(wrapper.name) }))

export const layer: Layer.Layer<never> = Layer.succeed(ForeignEnvs, {
  gymnasium: ({ id, wrappers, ...options }) => gymnasium(id, { ...options, wrappers: named(wrappers) }),
  pettingZoo: ({ id, wrappers, api, ...options }) =>
    pettingZoo(id, { ...options, wrappers: named(wrappers), ...(api !== null && { api }) }),
  command: ({ command: program, id, ...options }) => command(program, { id, ...options }),
  openEnv: fromServer,
})
