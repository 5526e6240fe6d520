/**
 * `npm run prove -- --only attacks`: tries every door of SECURITY.md as an attacker would.
 *
 * An attack is a value of type {@link Attack}. Each class of attacks is a file of this folder that exports a list, and joins
 * `attacks` below. An attack sends nothing anywhere but to the loopback interface, is bounded in count, and fails by
 * throwing, with `must` for example. Those that start a browser or need another user skip themselves by returning "skipped: …".
 */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Attack } from "./Attack.ts"
import { agentAttacks } from "./agents.ts"
import { boundsAttacks } from "./bounds.ts"
import { hostileConfigAttacks } from "./hostileConfigs.ts"
import { linkAttacks } from "./links.ts"
import { pageAttacks } from "./page.ts"
import { parserAttacks } from "./parsers.ts"
import { serverAttacks } from "./servers.ts"
import { closeTinker, tinkerAttacks } from "./tinker.ts"
import { tokenizerAttacks } from "./tokenizers.ts"
import { weightAttacks } from "./weights.ts"
import { must, type Proof } from "../Proof.ts"

const attacks: ReadonlyArray<Attack> = [
  ...agentAttacks,
  ...boundsAttacks,
  ...hostileConfigAttacks,
  ...linkAttacks,
  ...pageAttacks,
  ...parserAttacks,
  ...serverAttacks,
  ...tinkerAttacks,
  ...tokenizerAttacks,
  ...weightAttacks,
]

/** Tries one attack; returns undefined if it was held off, and else what it did. */
const attempt = async ({ attempt: begin, door, name }: Attack, folder: string): Promise<string | undefined> => {
  mkdirSync(folder)
  try {
    const seen = await begin(folder)
    console.log(`  ${door}: ${name}: ${seen}`)
    return undefined
  } catch (error) {
    return `${door}: ${name}: ${error instanceof Error ? error.message : String(error)}`
  }
}

export const attackProofs: ReadonlyArray<Proof> = [
  {
    name: "attacks",
    claim:
      "hostile runs, configs, caches, hosts, prompts, tokenizers, templates, archives, numbers and pages: each is refused, or is only read",
    run: async (folder) => {
      const succeeded: Array<string> = []
      for (const [index, attack] of attacks.entries()) {
        const result = await attempt(attack, join(folder, String(index)))
        if (result !== undefined) succeeded.push(result)
      }
      await closeTinker()
      must(succeeded.length === 0, succeeded.join("\n"))
      const doors = new Set(attacks.map(({ door }) => door))
      return `${attacks.length} attacks on ${doors.size} doors held off`
    },
  },
]
