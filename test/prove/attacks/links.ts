/** Attacks by links in the folder of a run: each leads to a file of the user, which must neither change nor be published. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { start } from "../../command/cli/effect.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

const secret = "the user's secret"

const effect = (folder: string, words: ReadonlyArray<string>) =>
  start(words, folder, { env: { ...process.env, XDG_CONFIG_HOME: join(folder, "settings") } }).ended

/** Trains an honest run, and makes a folder of the user beside it. Returns the paths of both. */
const honestRun = async (folder: string) => {
  const config =
    "name: evil\nseed: 0\nenv: CartPole-v1\nalgorithm: { name: ppo, nsteps: 32 }\nnum_envs: 2\ntotal_steps: 64\n"
  writeFileSync(join(folder, "honest.yaml"), config)
  const { stdout, stderr } = await effect(folder, ["run", "honest.yaml", "--json"])
  must(stdout !== "", stderr)
  const users = join(folder, "users")
  mkdirSync(join(users, ".notes.tmp"), { recursive: true })
  for (const name of ["secret", ".bashrc.old", "scores.jsonl"]) writeFileSync(join(users, name), secret)
  return { run: join(folder, String(JSON.parse(stdout).runDir)), users }
}

/** Fails if a file of the user was changed, removed or renamed. */
const checkUsers = (users: string): void => {
  const names = readdirSync(users).sort()
  must(names.join(" ") === ".bashrc.old .notes.tmp scores.jsonl secret", `the user's folder has ${names.join(" ")}`)
  for (const name of ["secret", ".bashrc.old", "scores.jsonl"])
    must(readFileSync(join(users, name), "utf8") === secret, `${name} was changed`)
}

/** Runs a command, which must fail with a message that names the link. */
const refused = async (folder: string, words: ReadonlyArray<string>, link: string): Promise<void> => {
  const { code, stderr } = await effect(folder, words)
  must(code !== 0, `effect ${words.join(" ")} succeeded`)
  must(stderr.includes(`${link} is a link, `), stderr)
}

export const linkAttacks: ReadonlyArray<Attack> = [
  {
    door: "runs",
    name: "links in a run that is resumed: a log, the scores, the checkpoints",
    attempt: async (folder) => {
      const { run, users } = await honestRun(folder)
      const links = { "run.log": join(users, "secret"), "scores/train": users, checkpoints: users }
      for (const [link, target] of Object.entries(links)) {
        rmSync(join(run, link), { recursive: true, force: true })
        mkdirSync(join(run, link, ".."), { recursive: true })
        symlinkSync(target, join(run, link))
        await refused(folder, ["run", "honest.yaml", "--resume", run, "--total-steps", "128"], link)
        checkUsers(users)
        rmSync(join(run, link))
      }
      return `${Object.keys(links).length} resumes refused`
    },
  },
  {
    door: "runs",
    name: "links in a run that is pushed: the config as a link to a secret, and folders that contain themselves",
    attempt: async (folder) => {
      const { run, users } = await honestRun(folder)
      for (const name of ["a", "b"]) symlinkSync(".", join(run, name))
      const honest = await effect(folder, ["push", run, "--to", "honest"])
      must(honest.code === 0, honest.stderr)
      rmSync(join(run, "config.yaml"))
      symlinkSync(join(users, "secret"), join(run, "config.yaml"))
      await refused(folder, ["push", run, "--to", "model"], "config.yaml")
      must(!existsSync(join(folder, "model")), "a repository was written")
      return "pushed without what links lead to, then refused"
    },
  },
]
