import { readFileSync } from "node:fs"
import { assert } from "vitest"
import { stringify } from "yaml"
import type { Body } from "../../agents/lm/server.ts"
import type { Outcome } from "./effect.ts"

const capitals = { France: "Paris", Japan: "Tokyo", Italy: "Rome", China: "Beijing", Peru: "Lima", Egypt: "Cairo" }

const items = Object.entries(capitals).map(([country, answer], at) => ({
  id: `capital-${country}`,
  question: `What is the capital of ${country}?`,
  answer,
  part: at % 2 === 0 ? "even" : "odd",
}))

export const evaluation = (more: object = {}): string =>
  stringify({
    name: "capitals",
    seed: 1,
    dataset: { items, id_field: "id", meta_fields: ["part"] },
    agents: {
      says_rome: { type: "memoryless_agent", lm_config: { model: "builtin:choice:Rome" } },
      reads: {
        type: "memoryless_agent",
        system_prompt: "RULE: [What is the capital of France?] -> Paris; RULE: [What is the capital of Peru?] -> Lima",
        lm_config: { model: "scripted:reader", prices: [{ model: "reader", input: 1, output: 2 }] },
      },
    },
    scorers: ["exact", "steps"],
    repeats: 2,
    by: ["part"],
    ...more,
  })

export const told = (outcome: Outcome): Outcome => {
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return outcome
}

export const cells = (text: string): ReadonlyArray<string> =>
  text.split("\n").map((line) => line.trim().replace(/ {2,}/g, " | "))

export const linesOf = (file: string): ReadonlyArray<Record<string, unknown>> =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

/** Gives the capital of the country that a request asks for, as the server answers it. */
export const capitalOf = ({ messages }: Body): string => {
  const asked = String(messages.at(-1)?.content)
  return Object.entries(capitals).find(([country]) => asked.includes(country))?.[1] ?? "?"
}
