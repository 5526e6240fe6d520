"""Steps games of PettingZoo for effect-rl, with a row for each agent of each game (see docs/several-agents.md)."""
import difflib, importlib, sys
is_silent, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # The import leaves no file in this folder.
import effect_rl_env as base
sys.dont_write_bytecode = is_silent
base.is_image = lambda space: base.is_box(space) and len(space.shape) == 3  # Boards have their channels last, as images have.

class Parallel:  # A game in which all agents act at once.
    def __init__(self, env): self.env = env
    def reset(self, seed): self.seen, self.infos = self.env.reset(seed=seed)
    def acting(self): return self.env.agents
    def observe(self, agent): return self.seen[agent]
    def info(self, agent): return self.infos.get(agent, {})
    def go_on(self): pass

    def step(self, actions):  # Returns rewards, terminations and truncations by agent.
        outcome = self.env.step({agent: actions[agents.index(agent)] for agent in self.env.agents})
        self.seen, *results, self.infos = outcome
        return results

class Turns:  # A game in which agents take turns.
    def __init__(self, env): self.env = env
    def acting(self): return [self.env.agent_selection]
    def observe(self, agent): return self.env.observe(agent)
    def info(self, agent): return self.env.infos.get(agent, {})

    def reset(self, seed):
        self.env.reset(seed=seed)
        self.go_on()

    def step(self, actions):
        self.env.step(actions[agents.index(self.env.agent_selection)])
        return [dict(results) for results in (self.env.rewards, self.env.terminations, self.env.truncations)]

    def go_on(self):  # Agents that are out of the game take a last turn without an action.
        is_out = lambda agent: self.env.terminations[agent] or self.env.truncations[agent]
        while self.env.agents and is_out(self.env.agent_selection): self.env.step(None)

def is_registered(kind, name):  # Whether PettingZoo has this game, with all acting at once ("parallel") or in turns ("aec").
    try: return pettingzoo.spec(kind, name) is not None
    except Exception: return False

kinds = {"parallel": "in which all agents act at once (api: parallel)", "aec": "in which they take turns (api: aec)"}

def missing(name, api):  # Returns the end of the message about a game that PettingZoo does not have.
    others = [kind for kind in kinds if api and kind != api and is_registered(kind, name)]
    if others: return f" {kinds[api]}, only one {kinds[others[0]]}"
    registries = {"parallel": pettingzoo.parallel_registry, "aec": pettingzoo.aec_registry}
    ids = {id for kind in kinds if api in (None, kind) for id in registries[kind]}
    # PettingZoo takes both spellings of a version, `_v3` and `-v3`; suggest the one that was typed.
    spelled = (lambda id: id) if "-v" in name else (lambda id: id.replace("-v", "_v"))
    near = difflib.get_close_matches(name, map(spelled, ids), 1)
    return (f" {kinds[api]}" if api else "") + (f"; did you mean {near[0]}?" if near else "")

def find(name, api):  # Returns the function that makes a game, and whether its agents take turns.
    global pettingzoo
    import pettingzoo
    if "/" in name and hasattr(pettingzoo, "make"):
        kind = api or ("parallel" if is_registered("parallel", name) else "aec")
        if not is_registered(kind, name): raise ValueError(f"PettingZoo {pettingzoo.__version__} has no such game{missing(name, api)}")
        return (lambda **options: pettingzoo.make(kind, name, **options)), kind == "aec"
    module = importlib.import_module("pettingzoo." + name.replace("/", ".") if "/" in name else name)
    kind = api or ("parallel" if hasattr(module, "parallel_env") else "aec")
    return getattr(module, "env" if kind == "aec" else "parallel_env"), kind == "aec"

def make(name, options, wrappers, api):
    maker, takes_turns = find(name, api)
    try: env = maker(**{"render_mode": "rgb_array", **options})
    except TypeError: env = maker(**options)  # Its pictures have no mode.
    for wrapper in wrappers:
        module, _, function = wrapper["name"].rpartition(".")
        if not module: raise ValueError(f"wrapper {function}: expected a module and its function, such as supersuit.pad_observations_v0")
        given = {key: value for key, value in wrapper.items() if key != "name"}
        env = getattr(importlib.import_module(module), function)(env, **given)
    return (Turns if takes_turns else Parallel)(env)

def shared(use, space_of):  # The space of all agents; they share a policy.
    for agent in agents[1:]:
        if space_of(agent) != space_of(agents[0]):
            found = f"{agents[0]} has {space_of(agents[0])}, {agent} has {space_of(agent)}"
            raise ValueError(f"its agents must have the same {use}, but they differ: {found}; wrappers such as supersuit.pad_observations_v0 and supersuit.pad_action_space_v0 make them equal")
    return space_of(agents[0])

def make_games(name, options, count):
    global np, games, agents, action_space, space, has_mask_inside, only, waiting, observations
    np = base.np
    given = options.pop("wrappers", []), options.pop("api", None)
    games = [make(name, options, *given) for _ in range(count)]
    first = games[0].env
    agents = list(first.possible_agents)
    space, action_space = shared("observations", first.observation_space), shared("actions", first.action_space)
    inside = getattr(space, "spaces", None)
    has_mask_inside, only = isinstance(inside, dict) and "action_mask" in inside, None
    if has_mask_inside:
        rest = {key: part for key, part in inside.items() if key != "action_mask"}
        only = next(iter(rest)) if len(rest) == 1 else None
        space = base.gymnasium.spaces.Dict(rest) if only is None else rest[only]
    choices = [int(count) for count in base.choices_of(action_space)]
    games[0].reset(0)
    is_masked = has_mask_inside or isinstance(games[0], Turns) or "action_mask" in games[0].info(games[0].acting()[0])
    choices = choices if is_masked and all(choices) else []
    waiting = np.array([float(choice == 0) for count in choices for choice in range(count)])
    observations = base.rows_for(space, len(games) * len(agents), len(waiting))
    described = base.describe_env(first, space, action_space)
    return {**described, "maxSteps": None, "hasActionMask": len(choices) > 0, "agents": list(map(str, agents))}

def show(game, rows, playing, is_over):  # Writes the rows of a game; those of agents that are out of it are zeros.
    acting = [] if is_over else list(game.acting())
    for row, agent in zip(rows, agents):
        row[:], mask = 0, waiting
        if agent in playing:
            seen = game.observe(agent)
            given = (seen if has_mask_inside else game.info(agent)).get("action_mask")
            row[: len(row) - len(waiting)] = base.flatten(space, seen if only is None else seen[only])
            if agent in acting: mask = np.ones(len(waiting)) if given is None else np.concatenate([np.ravel(part) for part in given])
        if len(waiting): row[len(row) - len(waiting) :] = 1 if is_over else mask

def exchange(body):
    size, count = len(agents), len(observations)
    seeds, commands = np.frombuffer(body, "<u4", count), body[-count:]
    actions = np.frombuffer(body[4 * count : -count], "<f4" if base.is_box(action_space) else "<i4").reshape(count, -1)
    actions, rewards, flags, finals = base.to_actions(action_space, actions), np.zeros(count, "<f4"), np.zeros((2, count), "?"), []
    for at, game in enumerate(games):
        base.index = first = at * size
        rows, command = observations[first : first + size], commands[first]
        starts = command == 3
        if command in (1, 2):
            before = playing_in(game)
            gained, terminated, truncated = game.step(actions[first : first + size])
            playing = [agent for agent in game.env.agents if not (terminated.get(agent) or truncated.get(agent))]
            is_over = not playing
            if not is_over: game.go_on()
            for index, agent in enumerate(agents, first):
                rewards[index] = gained.get(agent, 0)
                if agent in before and (is_over or agent in playing):
                    flags[:, index] = terminated.get(agent, False), truncated.get(agent, False)
                    flags[0, index] |= is_over and not flags[1, index]
                else: flags[0, index] = is_over or command == 2  # Nothing follows for an agent that has left.
            show(game, rows, before if is_over else playing, is_over)
            starts = is_over or command == 2
            if starts: finals.append(rows.tobytes())
        if starts:
            game.reset(int(seeds[first]))
            show(game, rows, playing_in(game), False)
    base.send(0, rewards.tobytes(), observations.tobytes(), *finals, flags.tobytes())

def playing_in(game): return list(game.env.agents)

base.serve(make_games, exchange, lambda row: games[row // len(agents)].env)
