/**
 * Defines kinds of memory. A kind has a Schema for the config below the key `memory_config`, and makes a memory from
 * that config. To add a kind of your own, provide a longer list of kinds by the reference `Memories.Kinds`.
 *
 * @example
 * ```ts
 * const dreams = MemoryKind.make({
 *   type: "dreams",
 *   schema: Schema.Struct({ _type: Schema.Literal("dreams"), depth: Schema.Int }),
 *   make: ({ depth }) => Effect.succeed(dreamsOf(depth)),
 * })
 * ```
 */
import { Effect, Schema } from "effect"
import { type ConfigError, decode, type DecodeOptions, isPlain, type Plain } from "../../../base/config/Config.ts"
import type { AgentError } from "../AgentError.ts"
import type { AgentMemory } from "./Memory.ts"

export interface MemoryKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  readonly decode: (config: Plain, from: DecodeOptions) => Effect.Effect<DecodedMemory, ConfigError>
}

/** A valid config of a memory, with an Effect that makes the memory. */
export interface DecodedMemory {
  /** The config with all its defaults. */
  readonly config: Plain
  readonly make: Effect.Effect<AgentMemory, AgentError>
}

/** Makes a kind of memory from the Schema of its config and a function that makes a memory from such a config. */
export const make = <S extends Schema.Codec<unknown, unknown>>(kind: {
  readonly type: string
  /** The Schema of the config, whose key `_type` is the kind's type. */
  readonly schema: S
  readonly make: (config: S["Type"]) => Effect.Effect<AgentMemory, AgentError>
}): MemoryKind => ({
  type: kind.type,
  schema: kind.schema,
  decode: (plain, from) =>
    Effect.map(decode(kind.schema, plain, from), (config) => {
      const encoded = Schema.encodeSync(kind.schema)(config)
      return { config: isPlain(encoded) ? encoded : {}, make: Effect.suspend(() => kind.make(config)) }
    }),
})
