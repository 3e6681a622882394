package org.collectord.example;

import android.app.Activity;
import android.os.Bundle;
import android.widget.TextView;

/** Calls traced code. The agent starts with the library. */
public final class MainActivity extends Activity {
    static {
        System.loadLibrary("app");
    }

    private static native int work(int n);

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        TextView text = new TextView(this);
        text.setText("fibonacci(20) is " + work(20));
        setContentView(text);
    }
}
