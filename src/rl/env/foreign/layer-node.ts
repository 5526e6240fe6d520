/** Provides the processes for envs of other programs that configs name. */
import { Layer } from "effect"
import { command } from "./command-node.ts"
import { env as gymnasium } from "./gymnasium-node.ts"
import { ForeignEnvs } from "./options.ts"
import { env as pettingZoo } from "./pettingzoo-node.ts"

/** Gives each wrapper's name its type: configs hold any JSON there. */
const named = (wrappers: ReadonlyArray<{ readonly [argument: string]: unknown }>) =>
  wrappers.map((wrapper) => ({ ...wrapper, name: String(wrapper.name) }))

export const layer: Layer.Layer<never> = Layer.succeed(ForeignEnvs, {
  gymnasium: ({ id, wrappers, ...options }) => gymnasium(id, { ...options, wrappers: named(wrappers) }),
  pettingZoo: ({ id, wrappers, api, ...options }) =>
    pettingZoo(id, { ...options, wrappers: named(wrappers), ...(api !== null && { api }) }),
  command: ({ command: program, id, ...options }) => command(program, { id, ...options }),
})
