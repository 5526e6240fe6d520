/** Makes the text of `policy.d.ts`, the types of an exported policy. */
import type { Card } from "./card.d.ts"

export const declarations = ({ observation, action, memory, mask }: Card): string => `/** The types of \`policy.js\`. */
export type Observation = ${observation.parts === null ? "" : "number | boolean | { readonly [part: string]: Observation } | "}ArrayLike<number> | ReadonlyArray<Observation>
${memory === 0 ? "" : "\n/** What the policy remembers between two steps of an episode. */\nexport type Memory = ReadonlyArray<number>\n"}
export interface Acted {
  readonly action: ${action.kind === "discrete" ? "number" : "ReadonlyArray<number>"}
${memory === 0 ? "" : "  /** The memory for the next step of the episode. */\n  readonly memory: Memory\n"}}

/** Describes the policy; \`GET /\` of the worker answers with it. */
export declare const card: Readonly<Record<string, unknown>>

/** The error of an observation or a memory that the policy cannot read. The message is one line for people. */
export declare class PolicyError extends Error {}

/** Checks an observation without acting, as a Standard Schema (https://standardschema.dev). The value is flat. */
export declare const observation: {
  readonly "~standard": {
    readonly version: 1
    readonly vendor: "effect-rl"
    readonly types?: { readonly input: Observation; readonly output: ReadonlyArray<number> }
    readonly validate: (
      value: unknown,
    ) =>
      | { readonly value: ReadonlyArray<number> }
      | { readonly issues: ReadonlyArray<{ readonly message: string; readonly path: ReadonlyArray<number> }> }
  }
}

/** Makes the policy from the compiled \`policy.wasm\`, a \`WebAssembly.Module\`. */
export declare const instantiate: (module: object) => {
  readonly card: typeof card
  /** Returns the best action. The observation is as the env gives it, flat or nested.${memory === 0 ? "" : " An episode begins without a memory."}${mask === 0 ? "" : ' A mask has a 1 for each choice that is allowed, else a 0; "all" allows all.'} */
  readonly act: (observation: Observation${memory > 0 ? `, memory${mask > 0 ? ":" : "?:"} Memory | null${mask > 0 ? " | undefined" : ""}` : mask > 0 ? ", memory: null | undefined" : ""}${mask > 0 ? ', mask: ArrayLike<number | boolean> | "all"' : ""}) => Acted
}
`
