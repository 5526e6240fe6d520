/**
 * A kind of memory: what a config can say of it below `memory_config`, and how it is made. Kinds of one's own are given
 * beside the built-in ones, by the reference `Memories.Kinds`.
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
import { type ConfigError, decode, type DecodeOptions, isPlain, type Plain } from "../../config/Config.ts"
import type { AgentError } from "../AgentError.ts"
import type { Memory } from "./Memory.ts"

export interface MemoryKind {
  readonly type: string
  readonly schema: Schema.Codec<unknown, unknown>
  readonly decode: (said: Plain, from: DecodeOptions) => Effect.Effect<DecodedMemory, ConfigError>
}

export interface DecodedMemory {
  /** With every default in it. */
  readonly config: Plain
  readonly make: Effect.Effect<Memory, AgentError>
}

/** A kind over its Schema, which is read strictly. */
export const make = <S extends Schema.Codec<unknown, unknown>>(kind: {
  readonly type: string
  /** It has a key `_type`, with the kind's. */
  readonly schema: S
  readonly make: (config: S["Type"]) => Effect.Effect<Memory, AgentError>
}): MemoryKind => ({
  type: kind.type,
  schema: kind.schema,
  decode: (said, from) =>
    Effect.map(decode(kind.schema, said, from), (config) => {
      const encoded = Schema.encodeSync(kind.schema)(config)
      return { config: isPlain(encoded) ? encoded : {}, make: Effect.suspend(() => kind.make(config)) }
    }),
})
