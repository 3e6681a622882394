import CollectAgent
import SwiftUI

@main
struct ExampleApp: App {
    init() {
        startAgent()
    }

    var body: some Scene {
        WindowGroup {
            Text("fibonacci(20) is \(example_work(20))")
        }
    }
}

/// Comes before the first traced call. What goes wrong costs the trace, not the app.
func startAgent() {
    var options = collect_agent_options()
    options.struct_bytes = UInt32(MemoryLayout<collect_agent_options>.size)
    "tcp:7720-7729".withCString { listen in
        options.listen = listen
        if collect_agent_start(&options) != 0 {
            print(String(cString: collect_agent_status()))
        }
    }
}
