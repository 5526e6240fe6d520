"""A text adventure without any package, which agents of effect-rl play: bring the key to the chest.

npx effect run examples/agents/adventure.ts
"""
import json, random, sys

replies, sys.stdout = sys.stdout, sys.stderr  # What a game prints must not come between the replies.
names = ["hall", "kitchen", "library", "cellar", "attic", "garden", "tower", "stable"]
opposite = {"north": "south", "south": "north", "east": "west", "west": "east"}

class Adventure:
    def __init__(self, rooms, task, seed):
        self.doors = {"hall": {}}
        house = random.Random(task)  # The task draws the house, and the seed the place of the key.
        for name in names[1:rooms]:
            free = [(room, way) for room, doors in self.doors.items() for way in opposite if way not in doors]
            room, way = house.choice(free)
            self.doors[room][way], self.doors[name] = name, {opposite[way]: room}
        self.room, self.key = "hall", random.Random(seed).choice(list(self.doors)[1:])

    def observation(self):
        lying = " A key lies here." if self.key == self.room else " A locked chest stands here." if self.room == "hall" else ""
        return f"You are in the {self.room}. Doors lead {' and '.join(self.doors[self.room])}.{lying}"

    def actions(self):
        extra = ["take key"] if self.key == self.room else ["open chest"] if self.room == "hall" else []
        return [f"go {way}" for way in self.doors[self.room]] + extra

    def step(self, action):  # Returns the reward, and whether the game is over.
        if action not in self.actions(): return 0, False
        verb, what = action.split()
        if verb == "go": self.room = self.doors[self.room][what]
        if verb == "take": self.key = "hand"
        won = verb == "open" and self.key == "hand"
        return int(won), won

for line in sys.stdin:  # The input ends when effect-rl has ended.
    request = json.loads(line)
    try:
        if request["type"] == "open":
            options = request["options"]
            reply = {"protocol": 1, "maxSteps": 40}  # A game with a list of tasks has "tasks": their number.
        elif request["type"] == "reset":
            game = Adventure(options.get("rooms", 4), request["task"], request["seed"])
            reply = {"observation": f"Open the chest in the hall. {game.observation()}", "actions": game.actions()}
        else:
            reward, done = game.step(request["action"].strip().lower())
            seen = "The chest is open." if done else game.observation()
            reply = {"observation": seen, "reward": reward, "done": done, "actions": game.actions()}
    except Exception as error:
        reply = {"error": repr(error)}
    print(json.dumps(reply), file=replies, flush=True)
