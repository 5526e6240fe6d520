"""Plays the games of ALFWorld in words for effect-rl (docs/agents/foreign-tasks.md has the lines that it reads and writes).

It needs Python 3.9 or later and: python3 -m pip install alfworld, and ALFWorld's data (alfworld-download).
"""
import json, os, sys

replies, sys.stdout = sys.stdout, sys.stderr  # What the simulator prints must not come between the replies.

# The beginnings of the names of games, and the name that the examples of each kind have in the file of prompts.
EXAMPLES = {
    "pick_and_place": "put",
    "pick_clean_then_place": "clean",
    "pick_heat_then_place": "heat",
    "pick_cool_then_place": "cool",
    "look_at_obj": "examine",
    "pick_two_obj": "puttwo",
}


def one(value):
    """ALFWorld answers with lists, which have one entry for the one game that is played here."""
    return value[0] if isinstance(value, (list, tuple)) else value


class Games:
    def __init__(self, options):
        import yaml
        import alfworld.agents.environment as environments

        with open(options["base_config_path"]) as file:
            config = yaml.safe_load(file)
        kind = config.get("env", {}).get("type")
        if not kind:
            raise ValueError(f"{options['base_config_path']}: env.type is missing")
        make = getattr(environments, "get_environment", None)
        self.manager = (make(kind) if make else getattr(environments, kind))(config, train_eval=options["split"])
        # The order of the files on disk differs between machines.
        self.files = sorted(self.manager.game_files)
        self.prompts = {}
        if options.get("prompts_path"):
            with open(options["prompts_path"]) as file:
                self.prompts = json.load(file)
        self.env = None

    def reset(self, task):
        if self.env is not None and hasattr(self.env, "close"):
            self.env.close()
        # With one file, the simulator cannot choose another game.
        self.manager.game_files, self.manager.num_games = [self.files[task]], 1
        self.env = self.manager.init_env(batch_size=1)
        observation, info = self.env.reset()
        # The first paragraph is the simulator's banner.
        text = "\n".join(one(observation).split("\n\n")[1:])
        return {"observation": self.examples(task) + text, **about(info)}

    def examples(self, task):
        name = "/".join(self.files[task].replace(os.sep, "/").split("/")[-3:-1])
        kind = next((EXAMPLES[start] for start in EXAMPLES if name.startswith(start)), None)
        keys = [f"react_{kind}_1", f"react_{kind}_0", f"act_{kind}_1", f"act_{kind}_0"]
        found = [self.prompts[key] for key in keys if self.prompts.get(key)][:2]
        if not found:
            return ""
        return "Interact with a household to solve a task. Here are two examples.\n" + "".join(found)

    def step(self, action):
        observation, _, done, info = self.env.step([action.strip()])
        text = one(observation)
        if text.startswith("You arrive at loc "):
            text = text[text.find(". ") + 2 :]
        won, ended = bool(one(info.get("won", [False]))), bool(one(done))
        # A game cannot be lost: one that ended without success reached the limit of the simulator.
        ending = {"done": won, "truncated": ended and not won}
        return {"observation": text, "message": text, "reward": 1 if won else 0, **ending, **about(info)}


def about(info):
    actions = one(info.get("admissible_commands", [None]))
    return {"actions": list(actions)} if actions else {}


games, max_steps = None, None
for line in sys.stdin:  # The input ends when effect-rl has ended.
    request = json.loads(line)
    try:
        if request["type"] == "open":
            games = Games(request["options"])
            reply = {"protocol": 1, "tasks": len(games.files), "maxSteps": request["options"].get("max_steps")}
        elif request["type"] == "reset":
            reply = games.reset(request["task"])
        else:
            reply = games.step(request["action"])
    except ImportError as error:
        reply = {"error": f"{error}; install it with: python3 -m pip install alfworld, or set python to another program"}
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply), file=replies, flush=True)
