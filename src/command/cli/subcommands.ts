/** Lists the subcommands of `effect` without their modules, so that the list can be printed without loading them. */

/** The description of each subcommand in the list of subcommands, in the order of the help. */
export const short = {
  init: "Write a file to start from",
  presets: "List tuned settings by algorithm and env",
  run: "Train: run a training and save it in a folder",
  tune: "Search for better settings by many trials",
  eval: "Evaluate a run, or agents on tasks",
  replay: "Train a run again and check that the result is the same",
  export: "Write a policy, a language model, a learning curve or episodes",
  import: "Save logs of Inspect, or Harbor's trajectories, as a run",
  push: "Publish a policy with a model card, to a folder or a hub",
  runs: "List, show, compare, label and delete runs",
  ui: "Look at runs in a web page",
  serve: "Serve a language model by OpenAI's protocol",
  gateway: "Record the calls of models by any agents",
  openenv: "Serve an env or tasks by OpenEnv's protocol",
  orchestrate: "Play the tasks of a trainer's runs",
  worker: "Add this machine to a cluster",
}

export type SubcommandName = keyof typeof short

export const isName = (word: string | undefined): word is SubcommandName =>
  word !== undefined && Object.hasOwn(short, word)

export const names = Object.keys(short).filter(isName)
