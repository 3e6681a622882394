"""What tests do with a browser, on top of what Chromium and Firefox each do in their own way: `open`, `run`,
`perform` (actions of WebDriver, as both protocols have them) and so on."""

from collector import PATIENCE, eventually

KEYS = {"escape": "\ue00c", "enter": "\ue007", "left": "\ue012", "up": "\ue013", "right": "\ue014",
        "down": "\ue015", "tab": "\ue004"}


class Browser:
    def wait_for(self, script, *arguments, patience=PATIENCE):
        return eventually(lambda: self.run(script, *arguments), lambda: f"{script}\n{self.visible_text()}", patience)

    def visible_text(self):
        return self.run("return document.body ? document.body.innerText : ''")

    def click(self, css):
        """With the mouse, wherever it is on the page."""
        self.point_at(*self.run("""
          const one = document.querySelector(arguments[0]);
          one.scrollIntoView({block: 'nearest', inline: 'nearest'});
          const area = one.getClientRects()[0];
          return [area.left + area.width / 2, area.top + area.height / 2];""", css), clicks=1)

    def press(self, *keys):
        """Keys as a user strikes them, with any element in focus."""
        actions = []
        for key in keys:
            key = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.perform({"type": "key", "id": "keyboard", "actions": actions})

    def point_at(self, x, y, clicks=0):
        actions = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]
        for _ in range(clicks):
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.perform({"type": "pointer", "id": "mouse", "actions": actions})

    def drag(self, x, y, to_x, to_y=None):
        to_y = y if to_y is None else to_y
        steps = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0},
                 {"type": "pointerDown", "button": 0},
                 {"type": "pointerMove", "x": int((x + to_x) / 2), "y": int((y + to_y) / 2), "duration": 0},
                 {"type": "pointerMove", "x": int(to_x), "y": int(to_y), "duration": 0},
                 {"type": "pointerUp", "button": 0}]
        self.perform({"type": "pointer", "id": "mouse", "actions": steps})

    def wheel(self, x, y, down):
        self.perform({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": int(x), "y": int(y), "deltaX": 0, "deltaY": down, "duration": 0}]})
