/**
 * Writes the comment at the top of a policy's header (`policyHeader.ts`). Names of envs, algorithms and parts of observations
 * come from files that anybody may have written, so no character of theirs may end a comment or a string.
 */
import { utf8 } from "../../base/text/utf8.ts"
import { partsOf, type ActionSpace } from "../env/Space.ts"
import type { PolicyAbout } from "../policy/about.ts"

/** The most characters of a name that come into the header, and the most parts of an observation that it lists. */
const mostCharacters = 120
const mostParts = 50

/** Returns a text for a comment of C: letters, digits and a few signs. Each other character becomes `_`. */
const plain = (text: string): string => text.slice(0, mostCharacters).replace(/[^A-Za-z0-9 _.,:+()[\]=-]/g, "_")

/**
 * Returns a text as a string of C. Bytes with a special meaning become a backslash and three octal digits. `?` is one of these
 * bytes, because C replaces `??` and some characters after it (a trigraph) by another character, and `*` is one, so that simple
 * tools find no comment in a string.
 */
export const quoted = (text: string): string => {
  const isPlain = (byte: number): boolean => byte >= 0x20 && byte < 0x7f && !'"\\?*'.includes(String.fromCharCode(byte))
  const bytes = [...utf8.encode(text.slice(0, mostCharacters))]
  return `"${bytes.map((byte) => (isPlain(byte) ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`)).join("")}"`
}

interface HeaderFacts {
  readonly about: PolicyAbout
  readonly prefix: string
  readonly commit: string
  /** The type of C of an action's elements. */
  readonly actionType: string
  /** The number of an observation's elements, with those of the mask. */
  readonly observationSize: number
  readonly stateSize: number
  readonly hasScores: boolean
  readonly bytes: { readonly constants: number }
  readonly memoryBytes: number
}

/** Returns the comment: what the policy is, how to use it, and what it needs. */
export const headerComment = (facts: HeaderFacts): string => {
  const { about, actionType, bytes, commit, hasScores, memoryBytes, prefix, stateSize } = facts
  const large = prefix.toUpperCase()
  const remembers = stateSize > 0
  const lines = [
    "A policy as C99, which C++ compilers accept, too. effect-rl wrote it. It needs no library and no heap.",
    "",
    `    algorithm  ${plain(about.algorithm)}`,
    `    env        ${plain(about.env)}`,
    `    step       ${about.step}`,
    ...(commit === "" ? [] : [`    commit     ${plain(commit)}`]),
    "",
    "How to use it, after the include of this file:",
    "",
    `    float observation[${large}_OBSERVATION_SIZE];`,
    `    ${actionType} action[${large}_ACTION_SIZE];`,
    ...(remembers ? [`    ${prefix}_state state;`, `    ${prefix}_reset(&state); (when an episode begins)`] : []),
    `    ${prefix}_act(observation, ${remembers ? "&state, " : ""}action); (at each step)`,
    ...(hasScores
      ? [
          `    ${prefix}_act_with_scores(observation, ${remembers ? "&state, " : ""}action, scores); (the same, with scores)`,
        ]
      : []),
    "",
    `The observation has ${facts.observationSize} numbers, as the env gives them: what the training did to them is part of the policy.`,
    ...observationLines(facts),
    ...actionLines(about.actionSpace),
    ...(hasScores
      ? ["The scores are those of the choices, of which the policy takes the highest: logits, or action values."]
      : []),
    "",
    `It has ${bytes.constants} bytes of constants, which can stay in flash, and ${memoryBytes} bytes of static memory${remembers ? `; a state has ${4 * stateSize} bytes` : ""}.`,
    "Calls share the static memory, so they must not overlap. Two threads or interrupts need a lock.",
    `${prefix}_test() acts on the examples at the end, and returns the largest difference from the right actions as a float: 0 if all`,
    "are right.",
    "",
    "The actions have the same bits as those of effect-rl, on every machine with IEEE 754 numbers and a compiler that keeps the",
    "order of operations: without -ffast-math and the like, and without the 80-bit registers of old x86 processors.",
  ]
  return `/*\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */`
}

const observationLines = ({ about, observationSize }: HeaderFacts): ReadonlyArray<string> => {
  const parts = partsOf(about.observationSpace)
  const end = parts.reduce((sum, { size }) => sum + size, 0)
  const lines = parts
    .slice(0, mostParts)
    .map(
      ({ offset, path, size, space }) =>
        `    ${rangeOf(offset, size)}  ${path === "" ? "" : `${plain(path)}: `}${plain(describe(space))}`,
    )
  return [
    ...lines,
    ...(parts.length > mostParts ? [`    and ${parts.length - mostParts} other parts`] : []),
    ...(about.hasActionMask
      ? [`    ${rangeOf(end, observationSize - end)}  the mask: 1 for each choice that is allowed, otherwise 0`]
      : []),
  ]
}

const rangeOf = (offset: number, size: number): string =>
  size === 1 ? `${offset}` : `${offset} to ${offset + size - 1}`

const describe = (space: ActionSpace): string => {
  switch (space._tag) {
    case "Box":
      return `real numbers [${space.shape.join(", ")}], row by row`
    case "Discrete":
      return `a choice, from 0 to ${space.n - 1}`
    case "MultiDiscrete":
      return `${space.sizes.length} choices, each from 0 on`
    case "MultiBinary":
      return "switches, each 0 or 1"
  }
}

const actionLines = (space: ActionSpace): ReadonlyArray<string> => [`The action: ${describe(space)}.`]
