/**
 * The order in which the site shows the pages of `docs/`, by topic. A test checks that no page is left out.
 */

/** A topic of the site's menu, and its pages: paths below `docs/` without `.md`, each with its title in the menu. */
export interface Topic {
  readonly title: string
  readonly pages: Readonly<Record<string, string>>
}

export const guide: ReadonlyArray<Topic> = [
  {
    title: "Begin",
    pages: {
      choosing: "Which algorithm, what budget",
      effect: "Effect in five lines",
      recipes: "Recipes",
      install: "In your own project",
    },
  },
  {
    title: "Train",
    pages: {
      command: "The command",
      settings: "All settings",
      presets: "Tuned settings",
      tuning: "Search for settings",
      runs: "The files of a run, the page",
      policies: "Load a policy, fine-tune, resume",
      callbacks: "Callbacks",
      validators: "Validators",
    },
  },
  {
    title: "Parts of your own",
    pages: {
      library: "The library in code, your own env",
      "several-agents": "Several agents",
      spaces: "Dict observations, action masks",
      networks: "Networks, losses, optimisers",
      zoo: "Settings of the RL Zoo",
      "own-algorithm": "Your own algorithm",
      "data-sets": "Data sets of transitions",
      "foreign-envs": "Gymnasium, other languages",
      mujoco: "Bodies, by MuJoCo",
      minatar: "MinAtar's games",
      trust: "Programs of configs",
    },
  },
  {
    title: "Language models",
    pages: {
      agents: "Agents",
      "agents/data-sets": "Data sets",
      "agents/foreign-tasks": "Tasks of other programs",
      "agents/openenv": "OpenEnv",
      "agents/models": "Models",
      "agents/agents-and-memories": "Agents and memories",
      "agents/evaluations": "Evaluations",
      "agents/ci": "Evaluations in CI",
      "agents/prompts": "Prompts that learn",
      "agents/rollouts": "Rollouts",
      "agents/interchange": "Logs of other tools",
      "agents/bring-your-agent": "Bring your agent",
      "agents/gateway": "The gateway",
      "agents/in-code": "In code",
      multirun: "Train a small model",
      "algorithms/tokens": "Objectives on tokens",
      serve: "Serve a model",
      models: "Families of models",
      tinker: "Train by Tinker's protocol",
    },
  },
  {
    title: "Anywhere",
    pages: {
      gpu: "GPU",
      edge: "Edge worker",
      browser: "Browser",
      cluster: "Many machines",
      containers: "Containers",
      buckets: "Buckets of S3",
    },
  },
  {
    title: "Behind it",
    pages: { architecture: "Architecture", proofs: "Proofs", scores: "Scores", "scores/runs": "Scores: all trainings" },
  },
]
